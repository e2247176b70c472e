#include "s3/credentials.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/json_depth.h"
#include "base/lowercase.h"
#include "base/text.h"
#include "s3/xml.h"
#include "web/address.h"
#include "web/http.h"

namespace trainyard::s3 {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::system_clock;

constexpr std::chrono::minutes kRefreshBefore{5}, kRefreshAgain{1};
constexpr milliseconds kAnswerTimeout{5000};
constexpr int kTries = 3;
constexpr size_t kMostTokenBytes = size_t{64} << 10;
constexpr int64_t kMostSeconds = 3600;

/// One or none of two is given: "" for both where none is.
void require_both(const std::string& a, const std::string& b, std::string_view name_a, std::string_view name_b) {
  if (a.empty() == b.empty()) return;
  throw InputError(fmt::format("{} is given without {}; both are needed, or neither", a.empty() ? name_b : name_a,
                               a.empty() ? name_a : name_b));
}

/// A header is one line. A token is a secret, so it is not printed.
std::string one_line(std::string_view text, const std::string& source) {
  std::string line(trim(text));
  if (line.empty() || std::ranges::any_of(line, [](char c) { return c < ' ' || c == 0x7F; }))
    throw InputError(fmt::format("{}: a token is one line of printable characters", source));
  return line;
}

web::Answer ask_patiently(web::Http& http, const web::Question& question, int tries) {
  for (int number = 1;; ++number) {
    web::Answer answer = http.ask(question);
    if (number >= tries || !is_worth_retry(answer)) return answer;
    std::this_thread::sleep_for(pause_before(number, answer));
  }
}

/// "HTTP 403", or why none came.
std::string outcome_of(const web::Answer& answer) {
  return answer.failure == web::Failure::None ? fmt::format("HTTP {}", answer.status) : answer.reason;
}

[[noreturn]] void refuse(const web::Answer& answer, const std::string& where, const std::string& advice) {
  const std::string text = fmt::format("{}: no credentials came: {}; {}", where, outcome_of(answer), advice);
  if (is_worth_retry(answer) && answer.failure != web::Failure::Unreachable) throw PeerError(text);
  throw InputError(text);
}

std::optional<Credentials> of_environment(const Settings& settings) {
  const Environment& environment = settings.environment;
  Credentials credentials{.access_key = value_of(environment, "AWS_ACCESS_KEY_ID"),
                          .secret_key = value_of(environment, "AWS_SECRET_ACCESS_KEY"),
                          .session_token = value_of(environment, "AWS_SESSION_TOKEN"),
                          .expires = {},
                          .source = "AWS_ACCESS_KEY_ID"};
  require_both(credentials.access_key, credentials.secret_key, "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY");
  return credentials.access_key.empty() ? std::nullopt : std::optional(credentials);
}

/// What AssumeRoleWithWebIdentity is asked with.
struct WebIdentity {
  std::string token_file, role, session;
};

Credentials assume_role(const Settings& settings, const WebIdentity& identity) {
  const std::string where = fmt::format("AssumeRoleWithWebIdentity of {} at {}", identity.role, settings.sts_endpoint);
  const std::string token = one_line(read_file(identity.token_file, kMostTokenBytes), identity.token_file);
  const std::string session = identity.session.empty() ? "trainyard" : identity.session;
  const std::string body = fmt::format(
      "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn={}&RoleSessionName={}&WebIdentityToken={}",
      web::percent_encoded(identity.role), web::percent_encoded(session), web::percent_encoded(token));
  web::Http http;
  const web::Answer answer = ask_patiently(http,
                                           {.address = settings.sts_endpoint + "/",
                                            .method = "POST",
                                            .headers = {"Content-Type: application/x-www-form-urlencoded"},
                                            .body = body,
                                            .authorities = settings.authorities,
                                            .limit = 2 * kAnswerTimeout},
                                           kTries);
  if (answer.is_good()) return credentials_in_xml(answer.text, where);
  std::string code;
  if (answer.failure == web::Failure::None && answer.text.starts_with('<')) {
    const Element told = parse_xml(answer.text, where);
    if (const Element* const error = told.find("Error")) code = error->text_of("Code");
  }
  refuse(answer, where,
         fmt::format("{}look at the role's trust policy, at AWS_ROLE_ARN and at AWS_ENDPOINT_URL_STS",
                     code.empty() ? "" : fmt::format("it says {}; ", code.substr(0, 64))));
}

std::optional<Credentials> of_web_identity(const Settings& settings) {
  const Environment& environment = settings.environment;
  const WebIdentity given{.token_file = value_of(environment, "AWS_WEB_IDENTITY_TOKEN_FILE"),
                          .role = value_of(environment, "AWS_ROLE_ARN"),
                          .session = value_of(environment, "AWS_ROLE_SESSION_NAME")};
  if (given.token_file.empty()) return std::nullopt;  // a role without a token is of other programs
  require_both(given.token_file, given.role, "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN");
  return assume_role(settings, given);
}

std::optional<Credentials> of_profile(const Settings& settings) {
  const Section& profile = settings.profile.settings;
  const std::string source = fmt::format("the profile '{}'", settings.profile.name);
  const WebIdentity identity{.token_file = value_of(profile, "web_identity_token_file"),
                             .role = value_of(profile, "role_arn"),
                             .session = value_of(profile, "role_session_name")};
  if (!identity.token_file.empty()) {
    require_both(identity.token_file, identity.role, source + ": web_identity_token_file", source + ": role_arn");
    return assume_role(settings, identity);
  }
  Credentials credentials{.access_key = value_of(profile, "aws_access_key_id"),
                          .secret_key = value_of(profile, "aws_secret_access_key"),
                          .session_token = value_of(profile, "aws_session_token"),
                          .expires = {},
                          .source = source};
  for (const char* const name : {"role_arn", "sso_session", "sso_start_url", "credential_process", "login_session"})
    if (!value_of(profile, name).empty() && (credentials.access_key.empty() || name == std::string_view("role_arn")))
      throw InputError(
          fmt::format("{} takes its credentials by {}, which is not read here; give the variables that `aws configure "
                      "export-credentials --profile {} --format env` prints",
                      source, name, settings.profile.name));
  require_both(credentials.access_key, credentials.secret_key, source + ": aws_access_key_id",
               source + ": aws_secret_access_key");
  return credentials.access_key.empty() ? std::nullopt : std::optional(credentials);
}

std::optional<Credentials> of_container(const Settings& settings) {
  const Environment& environment = settings.environment;
  const std::string relative = value_of(environment, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  const std::string address = relative.empty() ? value_of(environment, "AWS_CONTAINER_CREDENTIALS_FULL_URI")
                                               : "http://169.254.170.2" + relative;
  if (address.empty()) return std::nullopt;
  if (!is_container_agent(address))
    throw InputError(
        "AWS_CONTAINER_CREDENTIALS_FULL_URI must begin with https://, or with http:// and this machine's own address "
        "or "
        "that of an agent (169.254.170.2, 169.254.170.23, [fd00:ec2::23]): a token goes there");
  std::vector<std::string> headers;
  const std::string file = value_of(environment, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
  const std::string token = value_of(environment, "AWS_CONTAINER_AUTHORIZATION_TOKEN");
  if (!file.empty())
    headers.push_back("Authorization: " + one_line(read_file(file, kMostTokenBytes), file));
  else if (!token.empty())
    headers.push_back("Authorization: " + one_line(token, "AWS_CONTAINER_AUTHORIZATION_TOKEN"));
  web::Http http;
  const web::Answer answer = ask_patiently(http,
                                           {.address = address,
                                            .headers = headers,
                                            .authorities = settings.authorities,
                                            .without_proxy = address.starts_with("http://"),
                                            .connect = kAnswerTimeout,
                                            .limit = kAnswerTimeout},
                                           kTries);
  const std::string where =
      relative.empty() ? "AWS_CONTAINER_CREDENTIALS_FULL_URI" : "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI";
  if (!answer.is_good())
    refuse(answer, where, "look at the association of the pod's service account with a role, and at the node's agent");
  Credentials credentials = credentials_in_json(answer.text, where);
  credentials.source = where;
  return credentials;
}

int64_t number_of(const Environment& environment, const char* name, int64_t unless_given) {
  const std::string value = value_of(environment, name);
  if (value.empty()) return unless_given;
  const auto number = parse_int(value);
  if (!number || *number < 1 || *number > kMostSeconds)
    throw InputError(fmt::format("{} is '{}'; a whole number from 1 to {} is needed", name, value, kMostSeconds));
  return *number;
}

/// None where nobody answers: then this is no instance of EC2.
std::optional<Credentials> of_instance(const Settings& settings) {
  const Environment& environment = settings.environment;
  if (lowercase(value_of(environment, "AWS_EC2_METADATA_DISABLED")) == "true") return std::nullopt;
  std::string server = value_of(environment, "AWS_EC2_METADATA_SERVICE_ENDPOINT");
  if (server.empty())
    server = lowercase(value_of(environment, "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE")) == "ipv6"
                 ? "http://[fd00:ec2::254]"
                 : "http://169.254.169.254";
  while (server.ends_with('/')) server.pop_back();
  const milliseconds patience = std::chrono::seconds(number_of(environment, "AWS_METADATA_SERVICE_TIMEOUT", 1));
  const int tries = static_cast<int>(number_of(environment, "AWS_METADATA_SERVICE_NUM_ATTEMPTS", 1));
  web::Http http;
  const auto ask = [&](const std::string& method, const std::string& path, const std::string& header) {
    return ask_patiently(http,
                         {.address = server + path,
                          .method = method,
                          .headers = {header},
                          .without_proxy = true,
                          .connect = patience,
                          .limit = patience},
                         tries);
  };
  const web::Answer token = ask("PUT", "/latest/api/token", "X-aws-ec2-metadata-token-ttl-seconds: 21600");
  if (!token.is_good()) return std::nullopt;
  const std::string where = "IMDS at " + server, proof = "X-aws-ec2-metadata-token: " + one_line(token.text, where);
  const std::string path = "/latest/meta-data/iam/security-credentials/";
  const web::Answer role = ask("GET", path, proof);
  if (role.status == 404) return std::nullopt;  // an instance without a role
  if (!role.is_good()) refuse(role, where, "try again, or set AWS_METADATA_SERVICE_TIMEOUT");
  const std::string name = one_line(role.text, where);
  const web::Answer answer = ask("GET", path + web::percent_encoded(name), proof);
  if (!answer.is_good()) refuse(answer, where, "try again, or set AWS_METADATA_SERVICE_TIMEOUT");
  Credentials credentials = credentials_in_json(answer.text, where);
  credentials.source = "the role of the instance (IMDS)";
  return credentials;
}

Credentials first_of(const Settings& settings) {
  for (const auto source : {of_environment, of_web_identity, of_profile, of_container, of_instance})
    if (auto credentials = source(settings)) return *credentials;
  throw InputError(
      fmt::format("no credentials for S3: none of AWS_ACCESS_KEY_ID, AWS_WEB_IDENTITY_TOKEN_FILE and "
                  "AWS_CONTAINER_CREDENTIALS_FULL_URI is set, the profile '{}' in ~/.aws/credentials and ~/.aws/config "
                  "has no keys, "
                  "and {}",
                  settings.profile.name,
                  lowercase(value_of(settings.environment, "AWS_EC2_METADATA_DISABLED")) == "true"
                      ? "AWS_EC2_METADATA_DISABLED is true"
                      : "no instance with a role answers (IMDS)"));
}

std::optional<TimePoint> expiry_in(const std::string& text, const std::string& where) {
  if (text.empty()) return std::nullopt;
  const auto expires = parse_time(text);
  if (!expires) throw InputError(fmt::format("{}: Expiration is no time such as 2026-01-31T12:00:00Z", where));
  return expires;
}

void require_whole(const Credentials& credentials, const std::string& where) {
  const auto fits = [](const std::string& text) {
    return std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7F; });
  };
  if (credentials.access_key.empty() || credentials.secret_key.empty() || !fits(credentials.access_key) ||
      !fits(credentials.secret_key) || !fits(credentials.session_token))
    throw InputError(fmt::format("{}: the answer holds no credentials", where));
}

}  // namespace

std::optional<TimePoint> parse_time(const std::string& text) {
  std::tm time{};
  const char* const end = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &time);
  if (!end) return std::nullopt;
  std::string_view rest(end);
  if (rest.starts_with('.')) rest = rest.substr(std::min(rest.find_first_not_of("0123456789", 1), rest.size()));
  if (rest != "Z" && rest != "+00:00") return std::nullopt;
  return system_clock::from_time_t(::timegm(&time));
}

bool is_container_agent(const std::string& address) {
  if (address.starts_with("https://")) return !web::origin_of(address).empty();
  constexpr std::array<std::string_view, 6> kHosts{"localhost",     "127.0.0.1",      "[::1]",
                                                   "169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"};
  const std::string origin = web::origin_of(address);
  return std::ranges::any_of(
      kHosts, [&](std::string_view host) { return origin.starts_with(fmt::format("http://{}:", host)); });
}

Credentials credentials_in_json(const std::string& text, const std::string& where) {
  const json answer = is_shallow_json(text) ? json::parse(text, nullptr, false) : json();
  if (!answer.is_object()) throw InputError(fmt::format("{}: the answer is no JSON object", where));
  const auto text_of = [&](const char* name) {
    const auto found = answer.find(name);
    return found != answer.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  Credentials credentials{.access_key = text_of("AccessKeyId"),
                          .secret_key = text_of("SecretAccessKey"),
                          .session_token = text_of("Token"),
                          .expires = expiry_in(text_of("Expiration"), where),
                          .source = where};
  require_whole(credentials, where);
  return credentials;
}

Credentials credentials_in_xml(const std::string& text, const std::string& where) {
  const Element answer = parse_xml(text, where);
  const Element* const result = answer.find("AssumeRoleWithWebIdentityResult");
  const Element* const found = result ? result->find("Credentials") : nullptr;
  if (!found) throw InputError(fmt::format("{}: the answer holds no credentials", where));
  Credentials credentials{.access_key = found->text_of("AccessKeyId"),
                          .secret_key = found->text_of("SecretAccessKey"),
                          .session_token = found->text_of("SessionToken"),
                          .expires = expiry_in(found->text_of("Expiration"), where),
                          .source = where};
  require_whole(credentials, where);
  return credentials;
}

Credentials CredentialChain::get() {
  const MutexLock lock(mutex_);
  const TimePoint now = system_clock::now();
  if (known_ && (!known_->expires || now < refresh_at_)) return *known_;
  try {
    known_ = first_of(settings_);
  } catch (const std::exception& error) {
    if (!known_ || now >= *known_->expires) throw;
    spdlog::warn("{}; going on with those that are good for {} more", error.what(),
                 human_duration(std::chrono::duration_cast<milliseconds>(*known_->expires - now)));
    refresh_at_ = now + kRefreshAgain;
    return *known_;
  }
  if (known_->expires) {
    const auto left = *known_->expires - now;
    refresh_at_ = *known_->expires - std::min<TimePoint::duration>(kRefreshBefore, left / 2);
  }
  return *known_;
}

void CredentialChain::forget(const Credentials& old) {
  const MutexLock lock(mutex_);
  if (known_ && known_->access_key == old.access_key && known_->session_token == old.session_token) known_.reset();
}

}  // namespace trainyard::s3
