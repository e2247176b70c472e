#include "kube/curl_transfer.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <stdexcept>
#include <utility>

namespace trainyard::kube {
namespace {

using namespace std::chrono_literals;

// A peer that is gone is noticed within half a minute, both where bytes of ours wait for it and where we wait for its.
constexpr long kKeepAliveIdleSeconds = 15, kKeepAliveIntervalSeconds = 5;
constexpr unsigned kUserTimeoutMilliseconds = 30'000;
constexpr long kConnectTimeoutMilliseconds = 10'000;
// Smallest that libcurl takes: hundreds of uploads at once are a few kilobytes each.
constexpr long kUploadBufferBytes = 16 * 1024;

int prepare_socket(void*, curl_socket_t socket, curlsocktype) {
  static_cast<void>(::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &kUserTimeoutMilliseconds, sizeof(unsigned)));
  return CURL_SOCKOPT_OK;
}

curl_blob borrowed(const std::string& text) {
  return {const_cast<char*>(text.data()), text.size(), CURL_BLOB_NOCOPY};  // libcurl only reads it
}

Trouble trouble_of(CURLcode code) {
  switch (code) {
    case CURLE_OK:
      return Trouble::None;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:  // broken off in the handshake; what is not trusted has codes of its own
      return Trouble::Unreachable;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
      return Trouble::Untrusted;
    case CURLE_OPERATION_TIMEDOUT:
      return Trouble::TimedOut;
    default:
      return Trouble::Broken;
  }
}

}  // namespace

CurlTransfer::CurlTransfer(uint64_t id, std::shared_ptr<const Endpoint> endpoint, Transfer transfer, Done on_done,
                           Data data)
    : done(std::move(on_done)),
      on_data(std::move(data)),
      id_(id),
      endpoint_(std::move(endpoint)),
      transfer_(std::move(transfer)),
      easy_(curl_easy_init()),
      started_(EventLoop::now()),
      last_heard_(started_) {
  if (!easy_) throw std::bad_alloc();
  set_up_connection();
  set_up_tls();
  set_up_request();
}

template <typename Value>
void CurlTransfer::set(CURLoption option, Value value) {
  if (const CURLcode code = curl_easy_setopt(easy_.get(), option, value); code != CURLE_OK)
    throw std::runtime_error(fmt::format("libcurl option {}: {}", static_cast<int>(option), curl_easy_strerror(code)));
}

void CurlTransfer::set_up_connection() {
  set(CURLOPT_PRIVATE, this);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_ERRORBUFFER, error_.data());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2TLS));
  set(CURLOPT_PIPEWAIT, 1L);  // wait for a connection that can carry this too rather than open another
  set(CURLOPT_CONNECTTIMEOUT_MS, kConnectTimeoutMilliseconds);
  set(CURLOPT_TIMEOUT_MS, static_cast<long>(transfer_.timeout.count()));
  set(CURLOPT_TCP_KEEPALIVE, 1L);
  set(CURLOPT_TCP_KEEPIDLE, kKeepAliveIdleSeconds);
  set(CURLOPT_TCP_KEEPINTVL, kKeepAliveIntervalSeconds);
  set(CURLOPT_SOCKOPTFUNCTION, prepare_socket);
  if (!endpoint_->proxy_url.empty())
    set(CURLOPT_PROXY, endpoint_->proxy_url.c_str());
  else if (is_loopback(host_of(endpoint_->server)))
    set(CURLOPT_NOPROXY, "*");
}

void CurlTransfer::set_up_tls() {
  set(CURLOPT_SSL_VERIFYPEER, 1L);
  set(CURLOPT_SSL_VERIFYHOST, 2L);
  set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  if (!endpoint_->ca_pem.empty()) {
    curl_blob authorities = borrowed(endpoint_->ca_pem);
    set(CURLOPT_CAINFO_BLOB, &authorities);
    set(CURLOPT_CAPATH, static_cast<const char*>(nullptr));  // else the system's would be trusted as well
  }
  if (endpoint_->certificate_pem.empty()) return;
  curl_blob certificate = borrowed(endpoint_->certificate_pem), key = borrowed(endpoint_->key_pem);
  set(CURLOPT_SSLCERTTYPE, "PEM");
  set(CURLOPT_SSLKEYTYPE, "PEM");
  set(CURLOPT_SSLCERT_BLOB, &certificate);
  set(CURLOPT_SSLKEY_BLOB, &key);
}

/// libcurl verifies the name in the URL: so the URL has that name, and the connection goes where it should.
std::string CurlTransfer::server_to_verify() {
  if (endpoint_->tls_server_name.empty()) return endpoint_->server;
  const std::string& server = endpoint_->server;
  const std::string host(host_of(server));
  const size_t start = server.find(host);
  const std::string rest = server.substr(start + host.size());
  const std::string port = rest.starts_with(':') ? rest.substr(1, rest.find('/') - 1) : "443";
  append(connect_to_, fmt::format("{}:{}:{}:{}", endpoint_->tls_server_name, port, host, port).c_str());
  set(CURLOPT_CONNECT_TO, connect_to_.get());
  append(headers_, fmt::format("Host: {}:{}", host, port).c_str());
  return server.substr(0, start) + endpoint_->tls_server_name + rest;
}

void CurlTransfer::set_up_request() {
  set(CURLOPT_URL, (server_to_verify() + transfer_.path).c_str());
  for (const std::string& header : transfer_.headers) append(headers_, header.c_str());
  set(CURLOPT_WRITEFUNCTION, write_callback);
  set(CURLOPT_WRITEDATA, this);
  set(CURLOPT_HEADERFUNCTION, header_callback);
  set(CURLOPT_HEADERDATA, this);
  if (is_write(transfer_.method)) set_up_body();
  set(CURLOPT_HTTPHEADER, headers_.get());
}

/// libcurl repeats a request by itself when a connection that was used before ends without an answer. For a write this
/// is the caller's decision: so the body is read from here, and seek_callback refuses to begin again.
void CurlTransfer::set_up_body() {
  append(headers_, "Expect:");
  set(CURLOPT_POST, 1L);
  set(CURLOPT_CUSTOMREQUEST, name_of(transfer_.method));
  set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(transfer_.body.size()));
  set(CURLOPT_UPLOAD_BUFFERSIZE, kUploadBufferBytes);
  set(CURLOPT_READFUNCTION, read_callback);
  set(CURLOPT_READDATA, this);
  set(CURLOPT_SEEKFUNCTION, seek_callback);
  set(CURLOPT_SEEKDATA, this);
}

int CurlTransfer::status() const {
  long status = 0;
  curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &status);
  return static_cast<int>(status);
}

size_t CurlTransfer::receive(std::string_view bytes) {
  if (on_data && status() == 200) {
    if (received_.empty() && on_received) on_received();
    received_.append(bytes);
    return bytes.size();
  }
  if (body_.size() + bytes.size() > transfer_.body_limit) {
    is_too_large_ = true;
    return 0;
  }
  body_.append(bytes);
  return bytes.size();
}

size_t CurlTransfer::hand_out(char* buffer, size_t size) {
  if (transfer_.may_send && !transfer_.may_send()) return CURL_READFUNC_ABORT;
  const size_t count = std::min(size, transfer_.body.size() - uploaded_);
  std::memcpy(buffer, transfer_.body.data() + uploaded_, count);
  uploaded_ += count;
  return count;
}

size_t CurlTransfer::write_callback(char* bytes, size_t size, size_t count, void* self) {
  auto& transfer = *static_cast<CurlTransfer*>(self);
  transfer.last_heard_ = EventLoop::now();
  return transfer.receive({bytes, size * count});
}

size_t CurlTransfer::header_callback(char*, size_t size, size_t count, void* self) {
  static_cast<CurlTransfer*>(self)->last_heard_ = EventLoop::now();
  return size * count;
}

size_t CurlTransfer::read_callback(char* buffer, size_t size, size_t count, void* self) {
  return static_cast<CurlTransfer*>(self)->hand_out(buffer, size * count);
}

int CurlTransfer::seek_callback(void* self, curl_off_t offset, int origin) {
  const auto& transfer = *static_cast<CurlTransfer*>(self);
  return origin == SEEK_SET && offset == 0 && transfer.uploaded_ == 0 ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL;
}

Outcome CurlTransfer::outcome(CURLcode code) {
  Outcome outcome{.trouble = is_too_large_ ? Trouble::TooLarge : trouble_of(code), .was_sent = uploaded_ > 0};
  outcome.status = status();
  outcome.body = std::move(body_);
  if (curl_off_t wait = 0; curl_easy_getinfo(easy_.get(), CURLINFO_RETRY_AFTER, &wait) == CURLE_OK && wait > 0)
    outcome.retry_after = std::chrono::seconds(std::min<curl_off_t>(wait, 3600));
  if (outcome.trouble == Trouble::TooLarge)
    outcome.message = fmt::format("the answer is larger than {} bytes", transfer_.body_limit);
  else if (code == CURLE_ABORTED_BY_CALLBACK)
    outcome.message = "not sent: it was no longer allowed when the connection was ready for it";
  else if (code != CURLE_OK)
    outcome.message = error_.front() != '\0' ? error_.c_str() : curl_easy_strerror(code);
  return outcome;
}

}  // namespace trainyard::kube
