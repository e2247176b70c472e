#include "kube/credentials.h"

#include <fmt/format.h>

#include <utility>

#include "kube/text.h"

namespace trainyard::kube {
namespace {

using namespace std::chrono_literals;

constexpr auto kFilesAreFreshFor = 60s;
// A plugin's answer is replaced a little before it expires: a request on its way should not arrive too late.
constexpr auto kExpiryMargin = 10s;
// A plugin that fails is not run again at once for each of hundreds of requests.
constexpr auto kPluginPause = 2s;

/// A file that cannot be read just now (it is being replaced) leaves what was in it before; the server says whether
/// that still holds.
void refresh(std::string& content, const std::filesystem::path& file) {
  if (file.empty()) return;
  if (auto fresh = process_surroundings().read_file(file); fresh && !fresh->empty()) content = std::move(*fresh);
}

}  // namespace

Credentials::Credentials(EventLoop& loop, Config config) : loop_(loop), config_(std::move(config)) {}

bool Credentials::is_fresh() const {
  if (!has_current_) return false;
  if (config_.identity.exec)  // the clock of the calendar: that is what the expiry is written by
    return !expires_ || std::chrono::system_clock::now() + kExpiryMargin < *expires_;
  const Identity& identity = config_.identity;
  const bool is_static = identity.token_file.empty() && identity.certificate_file.empty() &&
                         identity.key_file.empty() && config_.ca_file.empty();
  return is_static || EventLoop::now() - read_at_ < kFilesAreFreshFor;
}

void Credentials::get(Ready ready) {
  if (is_fresh()) return ready(current_);
  if (!config_.identity.exec) {
    read_files();
    return ready(current_);
  }
  waiting_.push_back(std::move(ready));
  if (!plugin_) run_plugin();
}

void Credentials::reject(uint64_t serial) {
  if (serial == current_.serial) has_current_ = false;
}

void Credentials::read_files() {
  Identity& identity = config_.identity;
  refresh(identity.token, identity.token_file);
  refresh(identity.certificate_pem, identity.certificate_file);
  refresh(identity.key_pem, identity.key_file);
  read_at_ = EventLoop::now();
  use(trimmed(identity.token), identity.certificate_pem, identity.key_pem);
}

void Credentials::use(std::string token, std::string certificate_pem, std::string key_pem) {
  refresh(config_.endpoint.ca_pem, config_.ca_file);
  ++current_.serial;
  has_current_ = true;
  current_.token = std::move(token);
  current_.headers = config_.identity.impersonation;
  if (!current_.token.empty()) current_.headers.push_back("Authorization: Bearer " + current_.token);
  if (current_.endpoint && current_.endpoint->certificate_pem == certificate_pem &&
      current_.endpoint->key_pem == key_pem && current_.endpoint->ca_pem == config_.endpoint.ca_pem)
    return;
  auto endpoint = std::make_shared<Endpoint>(config_.endpoint);
  endpoint->certificate_pem = std::move(certificate_pem);
  endpoint->key_pem = std::move(key_pem);
  current_.endpoint = std::move(endpoint);
}

void Credentials::run_plugin() {
  const ExecPlugin& plugin = *config_.identity.exec;
  Subprocess::Command command{.arguments = {plugin.command}};
  command.arguments.insert(command.arguments.end(), plugin.args.begin(), plugin.args.end());
  for (const auto& [name, value] : plugin.env) command.environment.push_back(name + "=" + value);
  command.environment.push_back("KUBERNETES_EXEC_INFO=" + exec_info(plugin, config_.endpoint));
  plugin_ = std::make_unique<Subprocess>(
      loop_, std::move(command), alive_.guard([this](const Subprocess::Ended& ended) { finish_plugin(ended); }));
}

void Credentials::finish_plugin(const Subprocess::Ended& ended) {
  const ExecPlugin& plugin = *config_.identity.exec;
  if (!ended.problem.empty() || ended.exit_code != 0) {
    const std::string what = ended.problem.empty() ? fmt::format("ended with code {}", ended.exit_code) : ended.problem;
    const std::string hint = plugin.install_hint.empty() ? "" : "; " + plugin.install_hint;
    return settle(ApiError{
        .kind = ErrorKind::NotSent,
        .message = fmt::format("{}: {} {}: {}{}", plugin.where, plugin.command, what, trimmed(ended.complaint), hint)});
  }
  const auto credential = parse_exec_credential(ended.output, plugin);
  if (!credential) return settle(credential.error());
  expires_ = credential.value().expires;
  const Identity& identity = config_.identity;
  const bool brings_certificate = !credential.value().certificate_pem.empty();
  use(credential.value().token.empty() ? identity.token : credential.value().token,
      brings_certificate ? credential.value().certificate_pem : identity.certificate_pem,
      brings_certificate ? credential.value().key_pem : identity.key_pem);
  settle(std::nullopt);
}

void Credentials::settle(std::optional<ApiError> error) {
  const auto pause = error ? EventLoop::Clock::duration(kPluginPause) : EventLoop::Clock::duration::zero();
  // Not at once: it is the plugin's own callback that is running. Those who ask during the pause wait for the next run.
  loop_.after(pause, alive_.guard([this] {
    plugin_.reset();
    if (!waiting_.empty() && !is_fresh()) run_plugin();
  }));
  for (const Ready& ready : std::exchange(waiting_, {})) error ? ready(*error) : ready(current_);
}

}  // namespace trainyard::kube
