#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kube/alive.h"
#include "webhook/certificate_plan.h"
#include "webhook/certificate_store.h"

namespace trainyard::webhook {

/// Keeps the Secret's certificates good, this replica's servers on them and the caBundle true. Every replica has one:
/// each write is guarded, and who loses a race reads what the winner wrote. One thread: the loop's.
class CertificateKeeper {
 public:
  struct Settings {
    CertificatePlace place;
    std::string service;  ///< --webhook-service-name; its namespace is the Secret's
  };
  struct Hooks {
    std::function<TimePoint()> now;
    /// The material to serve with from now on. Called again whenever it changes.
    std::function<void(const Material&)> use;
    /// Call check() again in so long.
    std::function<void(std::chrono::milliseconds)> again_in;
    /// A request failed that is tried again; whether to say it is the receiver's decision.
    std::function<void(const std::string& what, const kube::ApiError&)> trouble;
  };
  static constexpr std::chrono::minutes kInterval{10};  ///< how late another replica's new certificate is taken

  /// `store` outlives it.
  CertificateKeeper(CertificateStore& store, Settings settings, Hooks hooks);

  /// Begins a round: read, make what is missing, use, publish. Does nothing while one is under way.
  void check();

 private:
  using Answer = kube::Result<Json>;
  void read_key();
  void have_key(const Answer& secret);
  void keep_key();
  void read_secret();
  void have_secret(const Answer& secret);
  void consider(const Json& secret);
  void write(const Json& secret, const Material& material, const CertificatePlan& plan);
  void serve_without_secret(const kube::ApiError& error, const char* verb);
  void use(const Material& material);
  void read_webhooks();
  void have_webhooks(const Answer& config);
  void fail(const std::string& what, const kube::ApiError& error);
  void finish(std::chrono::milliseconds again_in);
  void say_once(const std::string& message);
  [[nodiscard]] std::chrono::milliseconds next_look() const;
  [[nodiscard]] bool may_try_again();

  CertificateStore& store_;
  const Settings settings_;
  const Hooks hooks_;
  const std::vector<std::string> names_;
  bool is_checking_ = false;
  int attempts_ = 0;  ///< of this round, to win a race
  int failures_ = 0;  ///< rounds in a row
  std::string key_;  ///< of jobs' tokens, as its own Secret has it; "" where that is to be made, or out of reach
  Json key_secret_;  ///< to be written with the key in use; null where nothing is
  std::optional<Material> used_;
  Material own_;  ///< in memory, where the Secret is out of reach
  std::set<std::string> said_;
  kube::Alive alive_;
};

}  // namespace trainyard::webhook
