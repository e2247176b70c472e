#include "local/startup_probe.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "api/field.h"
#include "base/text.h"
#include "common/unique_fd.h"
#include "local/refusal.h"

namespace trainyard::local {
namespace {

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

std::string request_of(const Json& action) {
  const std::string path = text_at(action, "/path", "/");
  std::string request =
      fmt::format("GET {}{} HTTP/1.1\r\nConnection: close\r\n", path.starts_with('/') ? "" : "/", path);
  bool names_host = false;
  for (const Json& header : action.value("httpHeaders", Json::array())) {
    request += fmt::format("{}: {}\r\n", text_at(header, "/name"), text_at(header, "/value"));
    names_host = names_host || text_at(header, "/name") == "Host";
  }
  return request + (names_host ? "\r\n" : "Host: localhost\r\n\r\n");
}

/// 200 to 399, as a kubelet has it.
bool answers_well(const sockaddr_in& address, const std::string& request) {
  const UniqueFd socket = connected(address);
  if (!socket.valid() || ::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) return false;
  constexpr std::string_view kBegin = "HTTP/1.1 ";
  std::string answer;
  std::array<char, 256> block{};
  while (answer.size() < kBegin.size() + 3) {
    const ssize_t got = ::read(socket.get(), block.data(), block.size());
    if (got <= 0) return false;
    answer.append(block.data(), static_cast<size_t>(got));
  }
  const auto code = parse_int(answer.substr(kBegin.size(), 3));
  return answer.starts_with("HTTP/1.") && code && *code >= 200 && *code < 400;
}

std::chrono::seconds seconds_of(const Json& probe, const char* field, int64_t otherwise) {
  return std::chrono::seconds(std::max(int_at(probe, field).value_or(otherwise), otherwise == 0 ? int64_t{0} : 1));
}

}  // namespace

StartupProbe::StartupProbe(const Json& probe, const Json& container)
    : delay_(seconds_of(probe, "/initialDelaySeconds", 0)),
      period_(seconds_of(probe, "/periodSeconds", 10)),
      timeout_(seconds_of(probe, "/timeoutSeconds", 1)),
      threshold_(static_cast<int>(std::max<int64_t>(int_at(probe, "/failureThreshold").value_or(3), 1))) {
  if (const Json* const exec = object_at(probe, "/exec")) {
    command_ = exec->value("command", std::vector<std::string>());
  } else if (const Json* const tcp = object_at(probe, "/tcpSocket")) {
    question_ = [address = address_of(*tcp, container)] { return connected(address).valid(); };
  } else if (const Json* const http = object_at(probe, "/httpGet");
             http && text_at(*http, "/scheme", "HTTP") == "HTTP") {
    question_ = [address = address_of(*http, container), request = request_of(*http)] {
      return answers_well(address, request);
    };
  }
  if (command_.empty() && !question_)
    throw Refusal("startupProbe: exec, tcpSocket and httpGet with scheme HTTP work here; replace it by one of them");
}

void StartupProbe::begin(TimePoint now) {
  stop();
  failures_ = 0;
  has_succeeded_ = false;
  next_try_ = now + delay_;
}

void StartupProbe::stop() {
  end_try();
  next_try_.reset();
}

void StartupProbe::end_try() {
  if (pid_ > 0) ::kill(-pid_, SIGKILL);
  pid_ = 0;
}

void StartupProbe::on_time(const Program& program, TimePoint now) {
  if (pid_ > 0 && give_up_at_ <= now) {
    end_try();
    ++failures_;
  }
  if (pid_ > 0 || has_failed() || !next_try_ || *next_try_ > now) return;
  next_try_ = now + period_;
  give_up_at_ = now + timeout_;
  try {
    ask(program);
  } catch (const Refusal&) {  // it has no such program
    ++failures_;
  }
}

void StartupProbe::ask(const Program& program) {
  if (command_.empty()) {
    pid_ = start(question_);
    return;
  }
  Program asking = program;
  asking.command = command_;
  asking.is_silent = true;  // a pipe that nobody empties would stop it
  pid_ = start(asking).pid;
}

bool StartupProbe::on_end(pid_t pid, int status) {
  if (pid != pid_) return false;
  pid_ = 0;
  has_succeeded_ = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (has_succeeded_)
    next_try_.reset();
  else
    ++failures_;
  return true;
}

std::optional<TimePoint> StartupProbe::next_time() const {
  if (has_failed()) return std::nullopt;
  return pid_ > 0 ? std::optional(give_up_at_) : next_try_;
}

}  // namespace trainyard::local
