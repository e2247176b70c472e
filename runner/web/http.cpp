#include "web/http.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <string_view>

#include "base/lowercase.h"
#include "base/text.h"

namespace trainyard::web {
namespace {

constexpr size_t kMostText = size_t{64} << 20;  // of what is kept: a list of files is far smaller
constexpr size_t kMostHeaders = 256;

/// What libcurl's callbacks work on.
struct Exchange {
  const Question* question;
  Answer answer;
  CURL* curl;
  bool is_stopped = false;
  std::exception_ptr thrown;  ///< by the sink: it may not fly through libcurl
};

size_t take_header(char* data, size_t, size_t size, void* to) {
  auto& answer = static_cast<Exchange*>(to)->answer;
  const std::string_view line(data, size);
  if (line.starts_with("HTTP/")) answer.headers.clear();  // after a 100 or a proxy's answer the real one begins
  const size_t colon = line.find(':');
  if (colon != std::string_view::npos && answer.headers.size() < kMostHeaders)
    answer.headers[lowercase(std::string(trim(line.substr(0, colon))))] = std::string(trim(line.substr(colon + 1)));
  return size;
}

bool goes_to_sink(Exchange& exchange) {
  curl_easy_getinfo(exchange.curl, CURLINFO_RESPONSE_CODE, &exchange.answer.status);
  return exchange.question->sink && (exchange.answer.status == 200 || exchange.answer.status == 206);
}

size_t take_body(char* data, size_t, size_t size, void* to) {
  auto& exchange = *static_cast<Exchange*>(to);
  try {
    if (goes_to_sink(exchange))
      exchange.is_stopped = !exchange.question->sink(exchange.answer, {data, size});
    else if (exchange.is_stopped = exchange.answer.text.size() + size > kMostText; !exchange.is_stopped)
      exchange.answer.text.append(data, size);
  } catch (...) {
    exchange.thrown = std::current_exception();
    exchange.is_stopped = true;
  }
  return exchange.is_stopped ? 0 : size;
}

Failure failure_of(CURLcode code, const Exchange& exchange) {
  if (exchange.is_stopped) return Failure::Stopped;
  switch (code) {
    case CURLE_OK:
      return Failure::None;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
      return Failure::Unreachable;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
      return Failure::Distrusted;
    case CURLE_OPERATION_TIMEDOUT: {
      curl_off_t connected = 0;  // microseconds
      curl_easy_getinfo(exchange.curl, CURLINFO_CONNECT_TIME_T, &connected);
      if (connected == 0) return Failure::Unreachable;
      return exchange.question->sink ? Failure::Cut : Failure::TimedOut;
    }
    default:
      return Failure::Cut;
  }
}

bool sends_body(const Question& question) {
  return question.method == "PUT" || question.method == "POST";
}

CurlList header_lines(const Question& question) {
  CurlList lines;
  append(lines, "Accept-Encoding: identity");  // sizes and ranges are of the file's own bytes
  append(lines, "User-Agent: trainyard");
  for (const std::string& header : question.headers) append(lines, header.c_str());
  if (!sends_body(question)) return lines;
  append(lines, "Expect:");  // else libcurl waits a second for servers that do not know it
  const auto is_type = [](const std::string& header) { return lowercase(header).starts_with("content-type:"); };
  if (std::ranges::none_of(question.headers, is_type)) append(lines, "Content-Type:");  // else it says it is a form
  return lines;
}

void set_method(CURL* curl, const Question& question) {
  if (question.method == "HEAD") {
    curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
    return;
  }
  if (question.method != "GET") curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, question.method.c_str());
  if (!sends_body(question)) return;
  curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(question.body.size()));
  curl_easy_setopt(curl, CURLOPT_POSTFIELDS, question.body.empty() ? "" : question.body.data());  // it is not copied
}

}  // namespace

std::vector<std::string> range_from(uint64_t from) {
  if (from == 0) return {};
  return {fmt::format("Range: bytes={}-", from)};
}

Http::Http() : curl_(curl_easy_init()) {
  if (!curl_) throw std::runtime_error("libcurl gives no handle for asking a server");
}

Answer Http::ask(const Question& question) {
  CURL* const curl = curl_.get();
  curl_easy_reset(curl);  // the connections stay
  const CurlList lines = header_lines(question);
  Exchange exchange{.question = &question, .answer = {}, .curl = curl, .thrown = nullptr};
  curl_easy_setopt(curl, CURLOPT_URL, question.address.c_str());
  curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);  // what is asked may be signed, and names may have dots in them
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, lines.get());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "https,http");
  if (!question.authorities.empty()) curl_easy_setopt(curl, CURLOPT_CAINFO, question.authorities.c_str());
  if (question.without_proxy) curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
  set_method(curl, question);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(question.connect.count()));
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(question.limit.count()));
  if (question.silence.count() > 0) {
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME,
                     static_cast<long>(std::max<int64_t>(1, question.silence.count() / 1000)));
  }
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, &take_header);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &exchange);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &take_body);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &exchange);
  const CURLcode code = curl_easy_perform(curl);
  if (exchange.thrown) std::rethrow_exception(exchange.thrown);
  Answer& answer = exchange.answer;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &answer.status);
  answer.failure = failure_of(code, exchange);
  if (answer.failure != Failure::None) answer.reason = curl_easy_strerror(code);
  return std::move(answer);
}

}  // namespace trainyard::web
