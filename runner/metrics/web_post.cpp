#include "metrics/web_post.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace trainyard::metrics {
namespace {

constexpr std::chrono::milliseconds kConnectTimeout{3000};

int is_called_off(void* stop, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<const std::stop_token*>(stop)->stop_requested() ? 1 : 0;
}

}  // namespace

std::string WebPost::Answer::failure() const {
  return status == 0 ? text : fmt::format("HTTP {}{}{}", status, text.empty() ? "" : ": ", text);
}

size_t WebPost::keep_beginning(char* data, size_t, size_t size, void* kept) {
  auto& [text, most] = *static_cast<Kept*>(kept);
  text.append(data, std::min(size, most - std::min(most, text.size())));
  return size;
}

WebPost::WebPost(const std::string& url, const std::vector<std::string>& headers, size_t most_answer)
    : most_answer_(most_answer), curl_(curl_easy_init()) {
  if (!curl_) throw std::runtime_error("libcurl gives no handle for posting progress");
  for (const std::string& header : headers) append(headers_, header.c_str());
  CURL* const curl = curl_.get();
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers_.get());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "https,http");
  curl_easy_setopt(curl, CURLOPT_PROXY, "");  // a proxy of the pod's environment does not know the cluster's names
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(kConnectTimeout.count()));
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_QUICK_EXIT, 1L);  // a name server that hangs does not hold up the end
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, &is_called_off);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &WebPost::keep_beginning);
}

void WebPost::trust(const std::string& authorities) {
  if (authorities.empty()) {
    curl_easy_setopt(curl_.get(), CURLOPT_CAINFO_BLOB, nullptr);
    return;
  }
  curl_blob blob{const_cast<char*>(authorities.data()), authorities.size(), CURL_BLOB_COPY};
  curl_easy_setopt(curl_.get(), CURLOPT_CAINFO_BLOB, &blob);
}

void WebPost::trust_anyone() {
  curl_easy_setopt(curl_.get(), CURLOPT_SSL_VERIFYPEER, 0L);
  curl_easy_setopt(curl_.get(), CURLOPT_SSL_VERIFYHOST, 0L);
}

WebPost::Answer WebPost::send(const std::string& body, std::chrono::milliseconds timeout,
                              const std::stop_token& call_off) {
  CURL* const curl = curl_.get();
  Kept kept{.text = {}, .most = most_answer_};
  curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, static_cast<long>(body.size()));
  curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body.c_str());
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(timeout.count()));
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &call_off);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &kept);
  const CURLcode code = curl_easy_perform(curl);
  if (code != CURLE_OK)
    return {.is_distrusted = code == CURLE_PEER_FAILED_VERIFICATION, .text = curl_easy_strerror(code)};
  Answer answer{.text = std::move(kept.text)};
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &answer.status);
  while (!answer.text.empty() && answer.text.back() == '\n') answer.text.pop_back();
  return answer;
}

}  // namespace trainyard::metrics
