#include "s3/client.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <thread>

#include "base/error.h"
#include "base/text.h"
#include "common/hmac.h"
#include "s3/signature.h"
#include "s3/xml.h"

namespace trainyard::s3 {
namespace {

constexpr size_t kMostPages = 1000;  // of a thousand objects each

std::string host_of(const std::string& server) {
  return server.substr(server.find("://") + 3);
}

std::string_view text_of(std::span<const char> bytes) {
  return {bytes.data(), bytes.size()};
}

std::string escaped(std::string text) {
  for (const auto& [from, to] : {std::pair("&", "&amp;"), std::pair("<", "&lt;"), std::pair("\"", "&quot;")})
    text = replaced(std::move(text), from, to);
  return text;
}

std::string reason_of(const web::Answer& answer, const Told& told) {
  if (answer.failure != web::Failure::None) return answer.reason;
  return told.code.empty() ? fmt::format("HTTP {}", answer.status)
                           : fmt::format("HTTP {} {}", answer.status, told.code);
}

}  // namespace

bool RetryBudget::take() {
  const MutexLock lock(mutex_);
  if (left_ < kRetry) return false;
  left_ -= kRetry;
  return true;
}

void RetryBudget::give_back(int taken) {
  const MutexLock lock(mutex_);
  left_ = std::min(kMost, left_ + std::max(kReward, taken * kRetry));
}

std::unique_ptr<web::Http> Client::take_connection() {
  const MutexLock lock(mutex_);
  if (idle_.empty()) return std::make_unique<web::Http>();
  std::unique_ptr<web::Http> http = std::move(idle_.back());
  idle_.pop_back();
  return http;
}

void Client::keep_connection(std::unique_ptr<web::Http> http) {
  const MutexLock lock(mutex_);
  idle_.push_back(std::move(http));
}

web::Answer Client::try_once(const Asked& asked, const std::string& payload, const Credentials& credentials) {
  const std::string server = server_of(settings_, asked.name.bucket);
  Request request{.method = asked.method,
                  .path = path_of(settings_, asked.name),
                  .query = asked.query,
                  .headers = asked.headers,
                  .payload = payload};
  const Scope scope{
      .region = settings_.region, .service = "s3", .time = time_to_sign(std::chrono::system_clock::now())};
  request.headers["host"] = host_of(server);
  request.headers["x-amz-content-sha256"] = payload;
  request.headers["x-amz-date"] = scope.time;
  if (!credentials.session_token.empty()) request.headers["x-amz-security-token"] = credentials.session_token;
  web::Question question{.address = server + request.path,
                         .method = asked.method,
                         .body = asked.body,
                         .authorities = settings_.authorities,
                         .connect = settings_.connect,
                         .silence = settings_.silence,
                         .sink = asked.sink};
  if (const std::string query = canonical_query(asked.query); !query.empty()) question.address += "?" + query;
  for (const auto& [name, value] : request.headers) question.headers.push_back(fmt::format("{}: {}", name, value));
  question.headers.push_back("Authorization: " +
                             authorization(request, scope, credentials.access_key, credentials.secret_key));
  std::unique_ptr<web::Http> http = take_connection();
  web::Answer answer = http->ask(question);
  keep_connection(std::move(http));
  return answer;
}

web::Answer Client::ask(const Asked& asked) {
  const std::string payload = hex(sha256(text_of(asked.body)));
  bool has_renewed = false;
  for (int tries = 1, taken = 0;; ++tries) {
    const Credentials credentials = credentials_.get();
    web::Answer answer = try_once(asked, payload, credentials);
    if (answer.is_good()) return budget_.give_back(taken), answer;
    const Told told = told_by(answer);
    // A HEAD is answered without a reason.
    const bool may_have_expired = asked.method == "HEAD" && answer.status == 400 && credentials.expires;
    if ((has_expired(told) || may_have_expired) && !std::exchange(has_renewed, true)) {
      credentials_.forget(credentials);
      continue;
    }
    if (!may_pass(answer, told) || tries >= settings_.attempts || !budget_.take()) return answer;
    ++taken;
    spdlog::debug("{} {}: {}; trying again", asked.method, to_string(asked.name), reason_of(answer, told));
    std::this_thread::sleep_for(pause_before(tries, answer));
  }
}

void Client::refuse(const web::Answer& answer, const std::string& what) {
  s3::refuse(answer, what, credentials_.get().source, settings_);
}

std::optional<Facts> Client::head(const Name& name) {
  const web::Answer answer = ask({.method = "HEAD", .name = name, .headers = {{"x-amz-checksum-mode", "ENABLED"}}});
  if (answer.is_good()) return facts_of(answer, to_string(name));
  if (is_worth_retry(answer)) refuse(answer, to_string(name));
  if (answer.failure == web::Failure::None && answer.status == 404) return std::nullopt;
  // Why, a GET tells.
  const web::Answer why = ask({.method = "GET", .name = name, .headers = {{"range", "bytes=0-0"}}});
  refuse(why.is_good() ? answer : why, to_string(name));
}

web::Answer Client::bytes(const Name& name, const std::string& etag, uint64_t from, const web::Sink& sink) {
  Asked asked{.method = "GET", .name = name, .headers = {{"if-match", etag}}, .sink = sink};
  if (from > 0) asked.headers["range"] = fmt::format("bytes={}-", from);
  return try_once(asked, hex(sha256("")), credentials_.get());
}

std::optional<Text> Client::get(const Name& name, size_t most_bytes) {
  const std::string what = to_string(name);
  std::string bytes;
  const auto sink = [&](const web::Answer&, std::span<const char> more) {
    if (bytes.size() + more.size() > most_bytes) return false;
    bytes.append(more.data(), more.size());
    return true;
  };
  for (int tries = 1;; ++tries) {
    bytes.clear();
    web::Answer answer = try_once({.method = "GET", .name = name, .sink = sink}, hex(sha256("")), credentials_.get());
    if (answer.is_good()) return Text{std::move(bytes), answer.header("etag")};
    if (answer.failure == web::Failure::Stopped)
      throw InputError(fmt::format("{}: it has more than the {} that are read of it", what, human_bytes(most_bytes)));
    const Told told = told_by(answer);
    if (told.code == "NoSuchKey") return std::nullopt;
    if (!may_pass(answer, told) || tries >= settings_.attempts || !budget_.take()) refuse(answer, what);
    std::this_thread::sleep_for(pause_before(tries, answer));
  }
}

std::string Client::range(const Name& name, const std::string& etag, uint64_t from, size_t bytes) {
  if (bytes == 0) return "";
  const web::Answer answer =
      ask({.method = "GET",
           .name = name,
           .headers = {{"if-match", etag}, {"range", fmt::format("bytes={}-{}", from, from + bytes - 1)}}});
  if (!answer.is_good()) refuse(answer, to_string(name));
  if (answer.status != 206 || answer.text.size() != bytes)
    throw InputError(fmt::format("{}: {} bytes from {} on were asked for, and {} came", to_string(name), bytes, from,
                                 answer.text.size()));
  return answer.text;
}

std::optional<std::string> Client::put(const Name& name, std::span<const char> bytes, const Condition& condition) {
  Asked asked{.method = "PUT", .name = name, .body = bytes};
  if (condition.is_absent) asked.headers["if-none-match"] = "*";
  if (!condition.etag.empty()) asked.headers["if-match"] = condition.etag;
  const web::Answer answer = ask(asked);
  const bool is_absent_now = answer.status == 404 && !condition.etag.empty() && told_by(answer).code == "NoSuchKey";
  if (answer.failure == web::Failure::None && (answer.status == 412 || is_absent_now)) return std::nullopt;
  if (!answer.is_good()) refuse(answer, to_string(name));
  return answer.header("etag");
}

std::vector<Object> Client::list(const Name& name) {
  const std::string what = to_string(name);
  std::vector<Object> objects;
  std::string next;
  for (size_t pages = 0; pages < kMostPages; ++pages) {
    Query query{{"list-type", "2"}, {"prefix", name.key}, {"encoding-type", "url"}};
    if (!next.empty()) query.emplace_back("continuation-token", next);
    const web::Answer answer = ask({.method = "GET", .name = {name.bucket, ""}, .query = query});
    if (!answer.is_good()) refuse(answer, what);
    Page page = page_of(answer.text, what);
    std::ranges::move(page.objects, std::back_inserter(objects));
    next = page.next;
    if (next.empty()) return objects;
  }
  throw InputError(fmt::format("{}: it has more than {} objects; name a part of them", what, objects.size()));
}

void Client::remove(const Name& name) {
  const web::Answer answer = ask({.method = "DELETE", .name = name});
  if (!answer.is_good() && told_by(answer).code != "NoSuchKey") refuse(answer, to_string(name));
}

std::string Client::begin_parts(const Name& name) {
  const std::string what = to_string(name);
  const web::Answer answer = ask({.method = "POST", .name = name, .query = {{"uploads", ""}}});
  if (!answer.is_good()) refuse(answer, what);
  std::string upload = parse_xml(answer.text, what).text_of("UploadId");
  if (upload.empty()) throw InputError(fmt::format("{}: the answer names no upload", what));
  return upload;
}

Part Client::put_part(const Name& name, const std::string& upload, int number, std::span<const char> bytes) {
  const web::Answer answer = ask({.method = "PUT",
                                  .name = name,
                                  .query = {{"partNumber", std::to_string(number)}, {"uploadId", upload}},
                                  .body = bytes});
  if (!answer.is_good()) refuse(answer, to_string(name));
  return {number, answer.header("etag")};
}

void Client::complete(const Name& name, const std::string& upload, const std::vector<Part>& parts) {
  const std::string what = to_string(name);
  std::string body = "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
  for (const Part& part : parts)
    body += fmt::format("<Part><ETag>{}</ETag><PartNumber>{}</PartNumber></Part>", escaped(part.etag), part.number);
  body += "</CompleteMultipartUpload>";
  for (int tries = 1;; ++tries) {
    web::Answer answer = ask({.method = "POST", .name = name, .query = {{"uploadId", upload}}, .body = body});
    // It may say that all is well, and tell of an error once that has come up.
    const Told told = told_by(answer);
    if (answer.is_good() && told.code.empty()) return;
    // An answer that was lost may have said that it was done.
    if (told.code == "NoSuchUpload" && head(name)) return;
    if (answer.is_good()) answer.status = 500;
    if (tries >= settings_.attempts || !may_pass(answer, told) || !budget_.take()) refuse(answer, what);
    std::this_thread::sleep_for(pause_before(tries, answer));
  }
}

void Client::abort(const Name& name, const std::string& upload) {
  const web::Answer answer = ask({.method = "DELETE", .name = name, .query = {{"uploadId", upload}}});
  if (!answer.is_good() && told_by(answer).code != "NoSuchUpload") refuse(answer, to_string(name));
}

}  // namespace trainyard::s3
