#include "local/containers/probe_question.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "api/field.h"
#include "base/text.h"
#include "common/curl.h"
#include "common/unique_fd.h"
#include "local/manifest/refusal.h"

namespace trainyard::local {
namespace {

constexpr int kMostRequests = 10;         // as a kubelet's client follows redirects
constexpr size_t kMostBytes = 10 * 1024;  // of a body, as it reads one

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

/// The whole of a URL as it is asked for, or a part of it; "" where it is no URL or has no such part.
std::string part_of_url(const std::string& text, CURLUPart part) {
  constexpr unsigned kLenient = CURLU_PATH_AS_IS | CURLU_ALLOW_SPACE | CURLU_URLENCODE;
  const CurlUrl url(::curl_url());
  char* found = nullptr;
  if (::curl_url_set(url.get(), CURLUPART_URL, text.c_str(), kLenient) != CURLUE_OK) return "";
  if (::curl_url_get(url.get(), part, &found, 0) != CURLUE_OK) return "";
  const CurlText owner(found);
  return found;
}

/// The request of an httpGet.
struct Get {
  std::string url;
  std::string host;                  ///< its header Host; "": as the URL says
  std::vector<std::string> headers;  ///< the others, as libcurl takes them
};

/// A header that libcurl sends of itself is left out where the probe gives it without a value, as a kubelet does.
std::string header_of(const std::string& name, const std::string& value) {
  const bool is_left_out = ::strcasecmp(name.c_str(), "User-Agent") == 0 || ::strcasecmp(name.c_str(), "Accept") == 0;
  return value.empty() && !is_left_out ? name + ";" : fmt::format("{}: {}", name, value);
}

Get get_of(const Json& action, const Json& container) {
  const std::string path = text_at(action, "/path", "/"), host = text_at(action, "/host", "127.0.0.1");
  const char* const scheme = text_at(action, "/scheme") == "HTTPS" ? "https" : "http";
  const std::string place = fmt::format("{}://{}:{}", scheme, host, ntohs(address_of(action, container).sin_port));
  const std::string url = fmt::format("{}{}{}", place, path.starts_with('/') ? "" : "/", path);
  Get get{.url = part_of_url(url, CURLUPART_URL), .host = "", .headers = {"Connection: close"}};
  if (get.url.empty()) throw Refusal(fmt::format("startupProbe: {} is no URL", url));
  for (const Json& header : action.value("httpHeaders", Json::array())) {
    const std::string name = text_at(header, "/name"), value = text_at(header, "/value");
    if (::strcasecmp(name.c_str(), "Host") == 0)
      get.host = value;
    else
      get.headers.push_back(header_of(name, value));
  }
  return get;
}

struct Answered {
  int64_t code = 0;
  std::string location;      ///< the URL that a redirect leads to
  bool is_absolute = false;  ///< the answer gave it whole
};

/// Counts what came and drops it; ends the answer where that is enough.
size_t count_bytes(char*, size_t, size_t size, void* bytes) {
  return (*static_cast<size_t*>(bytes) += size) < kMostBytes ? size : 0;
}

/// A header of the answer as it came, "" where there is none.
std::string header_in(CURL* curl, const char* name) {
  curl_header* header = nullptr;
  return ::curl_easy_header(curl, name, 0, CURLH_HEADER, -1, &header) == CURLHE_OK ? header->value : "";
}

/// One request, whose redirects are not followed. Who asks has a limit of time for all of them.
std::optional<Answered> ask(const Get& get) {
  const CurlEasy curl(::curl_easy_init());
  size_t bytes = 0;
  CurlList headers;
  for (const std::string& header : get.headers) append(headers, header.c_str());
  if (!get.host.empty()) append(headers, ("Host: " + get.host).c_str());
  ::curl_easy_setopt(curl.get(), CURLOPT_URL, get.url.c_str());
  ::curl_easy_setopt(curl.get(), CURLOPT_HTTPHEADER, headers.get());
  ::curl_easy_setopt(curl.get(), CURLOPT_USERAGENT, "kube-probe/trainyard");
  ::curl_easy_setopt(curl.get(), CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
  ::curl_easy_setopt(curl.get(), CURLOPT_PATH_AS_IS, 1L);
  ::curl_easy_setopt(curl.get(), CURLOPT_PROTOCOLS_STR, "http,https");
  ::curl_easy_setopt(curl.get(), CURLOPT_PROXY, "");
  ::curl_easy_setopt(curl.get(), CURLOPT_SSL_VERIFYPEER, 0L);  // a kubelet does not check certificates either
  ::curl_easy_setopt(curl.get(), CURLOPT_SSL_VERIFYHOST, 0L);
  ::curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  ::curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, &count_bytes);
  ::curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &bytes);
  const CURLcode ended = ::curl_easy_perform(curl.get());
  if (ended != CURLE_OK && bytes < kMostBytes) return std::nullopt;
  long code = 0;
  const char* location = nullptr;
  ::curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &code);
  ::curl_easy_getinfo(curl.get(), CURLINFO_REDIRECT_URL, &location);
  const bool is_absolute = !part_of_url(header_in(curl.get(), "Location"), CURLUPART_SCHEME).empty();
  return Answered{code, location ? location : "", is_absolute};
}

bool leads_on(const Answered& answered) {
  constexpr std::array<int64_t, 5> kFollowed{301, 302, 303, 307, 308};
  return !answered.location.empty() && std::ranges::count(kFollowed, answered.code) > 0;
}

/// 200 to 399 is well, and a redirect to the same host is followed (pkg/probe/http).
Answer answer_to(Get get) {
  const std::string own_host = part_of_url(get.url, CURLUPART_HOST);
  for (int i = 0; i < kMostRequests; ++i) {
    const std::optional<Answered> answered = ask(get);
    if (!answered || answered->code < 200 || answered->code >= 400) return Answer::No;
    if (answered->code < 300) return Answer::Yes;
    if (!leads_on(*answered)) return Answer::Redirect;
    if (part_of_url(answered->location, CURLUPART_HOST) != own_host) return Answer::Redirect;
    get.url = answered->location;
    if (answered->is_absolute) get.host.clear();  // a probe's own name is for its own place
  }
  return Answer::No;
}

}  // namespace

Question question_of(const Json& probe, const Json& container) {
  if (const Json* const tcp = object_at(probe, "/tcpSocket"))
    return [address = address_of(*tcp, container)] { return connected(address).valid() ? Answer::Yes : Answer::No; };
  const Json* const http = object_at(probe, "/httpGet");
  if (!http) return nullptr;
  static const CURLcode kIsReady = ::curl_global_init(CURL_GLOBAL_DEFAULT);  // before a process is forked that asks
  if (kIsReady != CURLE_OK) throw Refusal("startupProbe: libcurl does not start");
  return [get = get_of(*http, container)] { return answer_to(get); };
}

}  // namespace trainyard::local
