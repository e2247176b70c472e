#include "webhook/certificate_keeper.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace trainyard::webhook {
namespace {

using kube::ErrorKind;

constexpr int kMostAttempts = 10;
constexpr std::chrono::seconds kFirstRetry{1}, kLongestRetry{60};

bool is_lost_race(const kube::ApiError& error) {
  return error.kind == ErrorKind::Conflict || error.kind == ErrorKind::AlreadyExists ||
         error.kind == ErrorKind::NotFound;
}

Json new_secret() {
  return {{"apiVersion", "v1"},
          {"kind", "Secret"},
          {"metadata", {{"labels", {{"app.kubernetes.io/name", "trainyard-operator"}}}}},
          {"type", "Opaque"}};
}

}  // namespace

CertificateKeeper::CertificateKeeper(CertificateStore& store, Settings settings, Hooks hooks)
    : store_(store),
      settings_(std::move(settings)),
      hooks_(std::move(hooks)),
      names_(names_of_service(settings_.service, settings_.place.ns)) {}

void CertificateKeeper::check() {
  if (std::exchange(is_checking_, true)) return;
  attempts_ = 0;
  read_key();
}

void CertificateKeeper::read_key() {
  store_.get_secret(Held::TokenKey, alive_.guard([this](const Answer& secret) { have_key(secret); }));
}

void CertificateKeeper::have_key(const Answer& secret) {
  const std::string& name = settings_.place.token_secret;
  if (!secret && secret.error().kind != ErrorKind::NotFound && secret.error().kind != ErrorKind::Forbidden)
    return fail("the Secret " + name, secret.error());
  key_ = secret ? material_of(secret.value()).token_key : "";
  key_secret_ = secret ? secret.value() : new_secret();
  if (!key_.empty()) key_secret_ = nullptr;
  if (!secret && secret.error().kind == ErrorKind::Forbidden) {
    key_secret_ = nullptr;
    say_once(
        fmt::format("may not get the Secret {}/{} ({}): the key of jobs' tokens is kept with the certificates alone, "
                    "and running jobs are cut off where those are deleted; grant get and update on it",
                    settings_.place.ns, name, secret.error().message));
  }
  read_secret();
}

/// Writes the key that is in use into its own Secret, where that has none.
void CertificateKeeper::keep_key() {
  if (key_secret_.is_null()) return read_webhooks();
  const Json next = with_material(std::exchange(key_secret_, nullptr), {.token_key = used_->token_key});
  store_.put_secret(Held::TokenKey, next, alive_.guard([this](const Answer& written) {
    if (!written && is_lost_race(written.error()) && may_try_again()) return read_key();
    if (!written && written.error().kind != ErrorKind::Forbidden)
      return fail("the Secret " + settings_.place.token_secret, written.error());
    if (!written)
      say_once(fmt::format("may not create or update the Secret {}/{} ({}): the key of jobs' tokens is kept with the "
                           "certificates alone",
                           settings_.place.ns, settings_.place.token_secret, written.error().message));
    read_webhooks();
  }));
}

void CertificateKeeper::read_secret() {
  store_.get_secret(Held::Certificates, alive_.guard([this](const Answer& secret) { have_secret(secret); }));
}

void CertificateKeeper::have_secret(const Answer& secret) {
  if (secret) return consider(secret.value());
  if (secret.error().kind == ErrorKind::NotFound) return consider(new_secret());
  if (secret.error().kind == ErrorKind::Forbidden) return serve_without_secret(secret.error(), "get");
  fail("the Secret " + settings_.place.secret, secret.error());
}

void CertificateKeeper::consider(const Json& secret) {
  Material material = material_of(secret);
  const bool has_other_key = !key_.empty() && material.token_key != key_;
  if (has_other_key) material.token_key = key_;
  CertificatePlan plan = plan_certificates(material, names_, hooks_.now());
  if (has_other_key && plan.remake == Remake::Nothing) {
    plan.remake = Remake::TokenKey;
    plan.why = fmt::format("its token.key is not that of the Secret {}", settings_.place.token_secret);
  }
  if (plan.remake != Remake::Nothing) return write(secret, material, plan);
  if (plan.is_foreign)
    say_once(fmt::format("the Secret {} has no ca.key: its certificate is used as it is, and renewed by who made it",
                         settings_.place.secret));
  use(material);
  keep_key();
}

void CertificateKeeper::write(const Json& secret, const Material& material, const CertificatePlan& plan) {
  const Json next = with_material(secret, remade(plan, material, names_, hooks_.now()));
  store_.put_secret(Held::Certificates, next, alive_.guard([this, why = plan.why](const Answer& written) {
    if (written) {
      spdlog::info("renewed the webhook's certificates in the Secret {}: {}", settings_.place.secret, why);
      return consider(written.value());
    }
    const kube::ApiError& error = written.error();
    if (error.kind == ErrorKind::Forbidden) return serve_without_secret(error, "create or update");
    if (is_lost_race(error) && may_try_again()) return read_secret();
    fail("the Secret " + settings_.place.secret, error);
  }));
}

/// Nobody trusts such a certificate by itself; still, who trusts it by hand, or does not check, is served. The token
/// key is this process's own, too.
void CertificateKeeper::serve_without_secret(const kube::ApiError& error, const char* verb) {
  say_once(
      fmt::format("may not {} the Secret {}/{} ({}): the webhook serves with a certificate of its own, which the API "
                  "server does not "
                  "trust; grant get, create and update on secrets there, or take the webhook configuration away",
                  verb, settings_.place.ns, settings_.place.secret, error.message));
  if (!key_.empty()) own_.token_key = key_;
  const CertificatePlan plan = plan_certificates(own_, names_, hooks_.now());
  if (plan.remake != Remake::Nothing) own_ = remade(plan, own_, names_, hooks_.now());
  use(own_);
  finish(next_look());
}

void CertificateKeeper::use(const Material& material) {
  if (used_ == material) return;
  used_ = material;
  hooks_.use(material);
}

void CertificateKeeper::read_webhooks() {
  if (settings_.place.webhooks.empty() || used_->authorities.empty()) return finish(next_look());
  store_.get_webhooks(alive_.guard([this](const Answer& config) { have_webhooks(config); }));
}

void CertificateKeeper::have_webhooks(const Answer& config) {
  const auto refused = [this](const kube::ApiError& error) {
    if (error.kind == ErrorKind::NotFound) return finish(next_look());  // none is installed
    if (error.kind != ErrorKind::Forbidden) return fail("the configuration " + settings_.place.webhooks, error);
    say_once(
        fmt::format("may not get and patch the ValidatingWebhookConfiguration {} ({}): its caBundle has to be "
                    "filled in by hand, with ca.crt of the Secret {}",
                    settings_.place.webhooks, error.message, settings_.place.secret));
    finish(next_look());
  };
  if (!config) return refused(config.error());
  const Json patch = publication(config.value(), settings_.service, settings_.place.ns, used_->authorities);
  if (patch.is_null()) return finish(next_look());
  store_.patch_webhooks(patch, alive_.guard([this, refused](const Answer& patched) {
    if (patched) {
      spdlog::info("published the webhook's authority in {}", settings_.place.webhooks);
      return finish(next_look());
    }
    if (patched.error().kind == ErrorKind::Conflict && may_try_again()) return read_webhooks();
    refused(patched.error());
  }));
}

void CertificateKeeper::fail(const std::string& what, const kube::ApiError& error) {
  const auto delay = std::min<std::chrono::milliseconds>(kFirstRetry * (1 << std::min(failures_, 10)), kLongestRetry);
  hooks_.trouble(what, error);
  const int failures = failures_ + 1;
  finish(delay);
  failures_ = failures;
}

void CertificateKeeper::finish(std::chrono::milliseconds again_in) {
  failures_ = 0;
  is_checking_ = false;
  hooks_.again_in(again_in);
}

void CertificateKeeper::say_once(const std::string& message) {
  if (said_.insert(message).second) spdlog::warn("{}", message);
}

/// When the certificate is due, where that is before the usual time. What is due already is its owner's to renew.
std::chrono::milliseconds CertificateKeeper::next_look() const {
  const auto facts = used_ ? facts_of(used_->serving.certificate) : std::nullopt;
  const TimePoint now = hooks_.now();
  if (!facts || facts->rotate_at() <= now) return kInterval;
  const auto due_in = std::chrono::ceil<std::chrono::seconds>(facts->rotate_at() - now);
  return std::min<std::chrono::milliseconds>(kInterval, due_in);
}

bool CertificateKeeper::may_try_again() {
  return ++attempts_ < kMostAttempts;
}

}  // namespace trainyard::webhook
