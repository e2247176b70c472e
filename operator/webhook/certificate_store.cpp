#include "webhook/certificate_store.h"

#include <utility>

#include "kube/resources.h"

namespace trainyard::webhook {
namespace {

kube::Request without_lease(kube::Request request) {
  request.needs_lease = false;
  return request;
}

}  // namespace

void KubeCertificateStore::get_secret(Held held, Callback done) {
  client_.call(kube::get(kube::object_path(kube::kSecrets, place_.ns, place_.name_of(held))), std::move(done));
}

void KubeCertificateStore::put_secret(Held held, Json secret, Callback done) {
  const std::string& name = place_.name_of(held);
  secret["metadata"]["name"] = name;
  secret["metadata"]["namespace"] = place_.ns;
  const bool is_there = find(secret, "/metadata/resourceVersion") != nullptr;
  client_.call(
      without_lease(is_there ? kube::replace(kube::object_path(kube::kSecrets, place_.ns, name), secret)
                             : kube::create(kube::collection_path(kube::kSecrets, place_.ns), secret)),
      std::move(done));
}

void KubeCertificateStore::get_webhooks(Callback done) {
  client_.call(kube::get(kube::object_path(kube::kValidatingWebhooks, "", place_.webhooks)), std::move(done));
}

void KubeCertificateStore::patch_webhooks(const Json& patch, Callback done) {
  client_.call(
      without_lease(kube::merge_patch(kube::object_path(kube::kValidatingWebhooks, "", place_.webhooks), patch)),
      std::move(done));
}

}  // namespace trainyard::webhook
