#pragma once

#include <functional>
#include <string>

#include "base/json.h"
#include "kube/client.h"
#include "kube/result.h"

namespace trainyard::webhook {

/// The operator's own Secrets. The key of jobs' tokens has one to itself: whoever deletes the certificates, to have new
/// ones, does not cut running jobs off.
enum class Held { Certificates, TokenKey };

/// All that certificates need of the cluster: two Secrets and one ValidatingWebhookConfiguration. Callbacks come later,
/// never inside of the call.
class CertificateStore {
 public:
  using Callback = std::function<void(kube::Result<Json>)>;
  virtual ~CertificateStore() = default;

  virtual void get_secret(Held held, Callback done) = 0;
  /// Creates it where `secret` has no resourceVersion, else replaces exactly that version. The answer is the Secret.
  virtual void put_secret(Held held, Json secret, Callback done) = 0;
  virtual void get_webhooks(Callback done) = 0;
  virtual void patch_webhooks(const Json& patch, Callback done) = 0;
};

struct CertificatePlace {
  std::string ns, secret, token_secret;
  std::string webhooks;  ///< of the ValidatingWebhookConfiguration; "": nothing is published
  [[nodiscard]] const std::string& name_of(Held held) const {
    return held == Held::Certificates ? secret : token_secret;
  }
};

/// A store in the API. Its writes need no lease: each is guarded, and every replica serves the webhook.
class KubeCertificateStore : public CertificateStore {
 public:
  /// `client` outlives it.
  KubeCertificateStore(kube::Client& client, CertificatePlace place) : client_(client), place_(std::move(place)) {}
  void get_secret(Held held, Callback done) override;
  void put_secret(Held held, Json secret, Callback done) override;
  void get_webhooks(Callback done) override;
  void patch_webhooks(const Json& patch, Callback done) override;

 private:
  kube::Client& client_;
  const CertificatePlace place_;
};

}  // namespace trainyard::webhook
