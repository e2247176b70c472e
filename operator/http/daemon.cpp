#include "http/daemon.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <microhttpd.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "http/listener.h"

namespace trainyard::http {
namespace {

/// Files that the operator needs for other things than this server's connections: its own requests, logs, epoll.
constexpr rlim_t kOtherFiles = 256;

unsigned connections_that_fit(unsigned wanted) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return wanted;
  const rlim_t room = limit.rlim_cur > 2 * kOtherFiles ? limit.rlim_cur - kOtherFiles : limit.rlim_cur / 2;
  return static_cast<unsigned>(std::min<rlim_t>(wanted, room));
}

int fd_of(MHD_Connection* connection) {
  return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

std::string_view header_of(MHD_Connection* connection, const char* name) {
  const char* const value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
  return value ? value : std::string_view();
}

bool announces_more_than(size_t limit, MHD_Connection* connection) {
  const std::string_view length = header_of(connection, MHD_HTTP_HEADER_CONTENT_LENGTH);
  size_t bytes = 0;
  const auto [end, error] = std::from_chars(length.data(), length.data() + length.size(), bytes);
  return error == std::errc::result_out_of_range || (error == std::errc() && bytes > limit);
}

std::string bearer_of(MHD_Connection* connection) {
  constexpr std::string_view kScheme = "Bearer ";
  const std::string_view value = header_of(connection, MHD_HTTP_HEADER_AUTHORIZATION);
  return value.starts_with(kScheme) ? std::string(value.substr(kScheme.size())) : "";
}

Response too_large(size_t limit) {
  return {.status = 413, .body = fmt::format("the body is larger than {} bytes\n", limit), .close = true};
}

}  // namespace

/// One request on its way.
struct Daemon::Exchange {
  bool has_begun = false;  ///< its headers have been seen
  bool is_too_large = false;
  bool is_one_too_many = false;  ///< its body found no room among the others
  size_t counted = 0;            ///< of its body, in bodies_bytes_
  std::string body;
};

struct Daemon::Calls {
  static void* on_request_line(void* self, const char*, MHD_Connection* connection) {
    auto& daemon = *static_cast<Daemon*>(self);
    daemon.deadlines_.set(fd_of(connection), Deadlines::Clock::now() + daemon.limits_.request_time);
    return new Exchange;  // NOLINT: its owner is the library until on_completed
  }

  static MHD_Result on_part(void* self, MHD_Connection* connection, const char* url, const char* method, const char*,
                            const char* data, size_t* size, void** context) {
    return static_cast<MHD_Result>(
        static_cast<Daemon*>(self)->on_part(connection, *static_cast<Exchange*>(*context), method, url, data, size));
  }

  static void on_completed(void* self, MHD_Connection* connection, void** context, MHD_RequestTerminationCode) {
    auto& daemon = *static_cast<Daemon*>(self);
    const std::unique_ptr<Exchange> exchange(static_cast<Exchange*>(*context));
    *context = nullptr;
    if (exchange) daemon.drop(*exchange);
    daemon.deadlines_.set(fd_of(connection), Deadlines::Clock::now() + daemon.limits_.idle_time);
  }

  static void on_connection(void* self, MHD_Connection* connection, void**, MHD_ConnectionNotificationCode what) {
    auto& daemon = *static_cast<Daemon*>(self);
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) return daemon.deadlines_.remove(fd_of(connection));
    daemon.deadlines_.set(fd_of(connection), Deadlines::Clock::now() + daemon.limits_.request_time);
  }
};

Daemon::Daemon(int listening, const Handler& handler, Deadlines& deadlines, const Limits& limits,
               const std::optional<Identity>& identity)
    : handler_(handler), deadlines_(deadlines), limits_(limits) {
  start(listening, identity);
}

void Daemon::start(int listening, const std::optional<Identity>& identity) {
  std::vector<MHD_OptionItem> options = {
      {MHD_OPTION_CONNECTION_LIMIT, static_cast<intptr_t>(connections_that_fit(limits_.connections)), nullptr},
      {MHD_OPTION_CONNECTION_MEMORY_LIMIT, static_cast<intptr_t>(limits_.header_bytes), nullptr},
      {MHD_OPTION_URI_LOG_CALLBACK, reinterpret_cast<intptr_t>(&Calls::on_request_line), this},
      {MHD_OPTION_NOTIFY_COMPLETED, reinterpret_cast<intptr_t>(&Calls::on_completed), this},
      {MHD_OPTION_NOTIFY_CONNECTION, reinterpret_cast<intptr_t>(&Calls::on_connection), this}};
  if (limits_.threads > 1) options.push_back({MHD_OPTION_THREAD_POOL_SIZE, limits_.threads, nullptr});
  unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ITC;
  if (identity) {  // the library copies neither: their texts live until it has started
    flags |= MHD_USE_TLS;
    options.push_back({MHD_OPTION_HTTPS_MEM_CERT, 0, const_cast<char*>(identity->chain_pem.c_str())});
    options.push_back({MHD_OPTION_HTTPS_MEM_KEY, 0, const_cast<char*>(identity->key_pem.c_str())});
  }
  UniqueFd own(::fcntl(listening, F_DUPFD_CLOEXEC, 0));  // the library closes what it is given
  options.push_back({MHD_OPTION_LISTEN_SOCKET, own.get(), nullptr});
  options.push_back({MHD_OPTION_END, 0, nullptr});
  daemon_ = MHD_start_daemon(flags, 0, nullptr, nullptr, &Calls::on_part, this, MHD_OPTION_ARRAY, options.data(),
                             MHD_OPTION_END);
  if (!daemon_ && identity)
    throw std::runtime_error("the HTTPS server does not start; its certificate or key may be unusable");
  if (!daemon_)
    throw ListenError(
        "the HTTP server does not start, for want of open files or threads; raise the limit on them (ulimit -n, -u, the "
        "pod's limit of pids)");
  static_cast<void>(own.release());
}

Daemon::~Daemon() {
  MHD_stop_daemon(daemon_);
}

void Daemon::drain() {
  draining_ = true;
  quiesced_ = UniqueFd(MHD_quiesce_daemon(daemon_));
}

unsigned Daemon::connections() const {
  const MHD_DaemonInfo* const info = MHD_get_daemon_info(daemon_, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
  return info ? info->num_connections : 0;
}

/// Called once when the headers are there, once for each part of the body, and once at its end. The library takes an
/// answer only at the first and the last of them: what is too large and did not say so before is read and dropped.
int Daemon::on_part(MHD_Connection* connection, Exchange& exchange, const char* method, const char* url,
                    const char* data, size_t* size) {
  if (!exchange.has_begun) {
    exchange.has_begun = true;
    return announces_more_than(limits_.body_bytes, connection) ? send(connection, too_large(limits_.body_bytes))
                                                               : MHD_YES;
  }
  if (*size == 0) return answer(connection, exchange, method, url);
  keep(exchange, data, *size);
  *size = 0;
  return MHD_YES;
}

void Daemon::keep(Exchange& exchange, const char* data, size_t size) {
  if (exchange.is_too_large || exchange.is_one_too_many) return;
  exchange.is_too_large = exchange.body.size() + size > limits_.body_bytes;
  exchange.counted += size;
  exchange.is_one_too_many = bodies_bytes_.fetch_add(size) + size > limits_.all_bodies_bytes;
  if (exchange.is_too_large || exchange.is_one_too_many) return drop(exchange);
  exchange.body.append(data, size);
}

void Daemon::drop(Exchange& exchange) {
  bodies_bytes_ -= std::exchange(exchange.counted, 0);
  exchange.body = {};
}

int Daemon::answer(MHD_Connection* connection, Exchange& exchange, const char* method, const char* url) {
  if (exchange.is_too_large) return send(connection, too_large(limits_.body_bytes));
  if (exchange.is_one_too_many)
    return send(connection, {.status = 503, .body = "too much to do; try again\n", .retry_after_seconds = 1});
  try {
    const Response response = handler_({.method = std::strcmp(method, "HEAD") == 0 ? "GET" : method,
                                        .path = url,
                                        .bearer = bearer_of(connection),
                                        .body = std::move(exchange.body)});
    drop(exchange);
    return send(connection, response);
  } catch (const std::exception& error) {                                       // nothing may unwind into the library
    spdlog::error("{} {:?}: {}", method, std::string_view(url), error.what());  // no control characters
    return send(connection, {.status = 500, .body = "internal error; the operator's log says more\n"});
  }
}

int Daemon::send(MHD_Connection* connection, const Response& response) const {
  MHD_Response* const made = MHD_create_response_from_buffer(
      response.body.size(), const_cast<char*>(response.body.data()), MHD_RESPMEM_MUST_COPY);
  if (!made) return MHD_NO;
  MHD_add_response_header(made, MHD_HTTP_HEADER_CONTENT_TYPE, response.content_type.c_str());
  if (response.retry_after_seconds)
    MHD_add_response_header(made, MHD_HTTP_HEADER_RETRY_AFTER, std::to_string(*response.retry_after_seconds).c_str());
  if (response.close || draining_) MHD_add_response_header(made, MHD_HTTP_HEADER_CONNECTION, "close");
  const int result = MHD_queue_response(connection, static_cast<unsigned>(response.status), made);
  MHD_destroy_response(made);
  return result;
}

}  // namespace trainyard::http
