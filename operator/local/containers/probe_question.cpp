#include "local/containers/probe_question.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>

#include "api/field.h"
#include "base/text.h"
#include "common/unique_fd.h"
#include "local/manifest/refusal.h"

namespace trainyard::local {
namespace {

constexpr int kMostRequests = 10;  // as a kubelet's client follows redirects
constexpr size_t kMostBytes = 1 << 20;  // of a head, as it reads one

sockaddr_in address_of(const Json& action, const Json& container) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  const Json& port = action.at("port");
  std::optional<int64_t> number = port.is_string() ? parse_int(port.get<std::string>()) : api::whole_number_of(port);
  for (const Json& each : container.value("ports", Json::array()))
    if (port.is_string() && each.value("name", Json()) == port) number = int_at(each, "/containerPort");
  if (!number || *number < 1 || *number > 65535)
    throw Refusal(fmt::format("startupProbe: port {} is none of the container's", dump(port)));
  address.sin_port = htons(static_cast<uint16_t>(*number));
  const std::string host = text_at(action, "/host", "127.0.0.1");
  if (::inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1)
    throw Refusal(fmt::format("startupProbe: host '{}' must be an address such as 127.0.0.1 here", host));
  return address;
}

UniqueFd connected(const sockaddr_in& address) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return {};
  return socket;
}

/// The place that is asked, which a redirect changes.
class Url {
 public:
  explicit Url(const std::string& text) : is_valid_(set(text, CURLU_PATH_AS_IS)) {}

  [[nodiscard]] bool is_valid() const { return is_valid_; }
  /// Goes to the URL that a `reference` in its content means. False where that is none.
  bool follow(const std::string& reference) { return set(reference, CURLU_NON_SUPPORT_SCHEME); }
  /// "" where it has no such part.
  [[nodiscard]] std::string part(CURLUPart part) const {
    char* text = nullptr;
    if (::curl_url_get(url_.get(), part, &text, CURLU_DEFAULT_PORT) != CURLUE_OK) return "";
    std::string copy = text;
    ::curl_free(text);
    return copy;
  }

 private:
  bool set(const std::string& text, unsigned flags) {
    return ::curl_url_set(url_.get(), CURLUPART_URL, text.c_str(), flags | CURLU_ALLOW_SPACE | CURLU_URLENCODE) ==
           CURLUE_OK;
  }
  struct Destroyer {
    void operator()(CURLU* url) const noexcept { ::curl_url_cleanup(url); }
  };
  std::unique_ptr<CURLU, Destroyer> url_{::curl_url()};
  bool is_valid_;
};

/// The request of an httpGet.
struct Get {
  sockaddr_in address;
  std::string url;
  std::string host;     ///< its header Host; "": as the URL says
  std::string headers;  ///< the others, a line each
};

Get get_of(const Json& action, const sockaddr_in& address) {
  const std::string path = text_at(action, "/path", "/");
  const std::string host = text_at(action, "/host", "127.0.0.1");
  const char* const begin = path.starts_with('/') ? "" : "/";
  Get get{.address = address, .url = fmt::format("http://{}:{}{}{}", host, ntohs(address.sin_port), begin, path)};
  for (const Json& header : action.value("httpHeaders", Json::array())) {
    const std::string name = text_at(header, "/name"), value = text_at(header, "/value");
    if (::strcasecmp(name.c_str(), "Host") == 0)
      get.host = value;
    else
      get.headers += fmt::format("{}: {}\r\n", name, value);
  }
  if (!Url(get.url).is_valid()) throw Refusal(fmt::format("startupProbe: {} is no URL", get.url));
  return get;
}

std::string request_for(const Url& url, const Get& get) {
  const std::string query = url.part(CURLUPART_QUERY);
  const std::string host = fmt::format("{}:{}", url.part(CURLUPART_HOST), url.part(CURLUPART_PORT));
  return fmt::format("GET {}{}{} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{}\r\n", url.part(CURLUPART_PATH),
                     query.empty() ? "" : "?", query, get.host.empty() ? host : get.host, get.headers);
}

/// The beginning of an answer, as far as a probe reads it.
struct Head {
  int64_t code = 0;
  std::string location;
};

std::optional<Head> parse_head(std::string_view text) {
  constexpr std::string_view kBegin = "HTTP/1.1 ", kLocation = "Location:";
  const auto code = text.size() < kBegin.size() + 3 ? std::nullopt : parse_int(text.substr(kBegin.size(), 3));
  if (!text.starts_with("HTTP/1.") || !code) return std::nullopt;
  Head head{.code = *code};
  for (std::string_view line : parts_of(text, '\n')) {
    if (line.empty() || line == "\r") break;  // the content follows
    if (line.size() < kLocation.size() || ::strncasecmp(line.data(), kLocation.data(), kLocation.size()) != 0) continue;
    line.remove_prefix(kLocation.size());
    const size_t first = line.find_first_not_of(" \t\r"), last = line.find_last_not_of(" \t\r");
    if (first != line.npos) head.location = line.substr(first, last - first + 1);
  }
  return head;
}

std::optional<Head> ask(const Url& url, const Get& get) {
  sockaddr_in address = get.address;
  address.sin_port = htons(static_cast<uint16_t>(parse_int(url.part(CURLUPART_PORT)).value_or(0)));
  const UniqueFd socket = connected(address);
  const std::string request = request_for(url, get);
  if (!socket.valid() || ::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) return std::nullopt;
  std::string answer;
  std::array<char, 4096> block{};
  while (answer.find("\n\r\n") == answer.npos && answer.find("\n\n") == answer.npos) {
    const ssize_t got = ::read(socket.get(), block.data(), block.size());
    if (got <= 0 || answer.size() > kMostBytes) return std::nullopt;
    answer.append(block.data(), static_cast<size_t>(got));
  }
  return parse_head(answer);
}

bool leads_on(const Head& head) {
  constexpr std::array<int64_t, 5> kFollowed{301, 302, 303, 307, 308};
  return !head.location.empty() && std::ranges::count(kFollowed, head.code) > 0;
}

/// 200 to 399 is well, and a redirect to the same host is followed (pkg/probe/http). One to TLS is not followed here.
Answer answer_to(Get get) {
  Url url(get.url);
  const std::string own_host = url.part(CURLUPART_HOST);
  for (int i = 0; i < kMostRequests; ++i) {
    const std::optional<Head> head = ask(url, get);
    if (!head || head->code < 200 || head->code >= 400) return Answer::No;
    if (head->code < 300) return Answer::Yes;
    if (!leads_on(*head)) return Answer::Redirect;
    if (head->location.starts_with("http://")) get.host.clear();  // a probe's own name is for its own place
    if (!url.follow(head->location)) return Answer::No;
    if (url.part(CURLUPART_HOST) != own_host || url.part(CURLUPART_SCHEME) != "http") return Answer::Redirect;
  }
  return Answer::No;
}

}  // namespace

Question question_of(const Json& probe, const Json& container) {
  if (const Json* const tcp = object_at(probe, "/tcpSocket"))
    return [address = address_of(*tcp, container)] { return connected(address).valid() ? Answer::Yes : Answer::No; };
  const Json* const http = object_at(probe, "/httpGet");
  if (!http || text_at(*http, "/scheme", "HTTP") != "HTTP") return nullptr;
  return [get = get_of(*http, address_of(*http, container))] { return answer_to(get); };
}

}  // namespace trainyard::local
