#include "scripted_server.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <stdexcept>
#include <utility>

namespace trainyard::kube {
namespace {

constexpr int kPatienceMilliseconds = 10'000;

bool wait_readable(int fd) {
  pollfd wanted{fd, POLLIN, 0};
  return ::poll(&wanted, 1, kPatienceMilliseconds) == 1;
}

size_t body_size(const std::string& head) {
  const auto place = head.find("Content-Length: ");
  size_t size = 0;
  if (place != std::string::npos) std::from_chars(head.data() + place + 16, head.data() + head.size(), size);
  return size;
}

}  // namespace

ScriptedServer::ScriptedServer(std::vector<Turn> turns) : turns_(std::move(turns)) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(listener_, 16) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    throw std::runtime_error("no port on the loopback");
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { serve(); });
}

ScriptedServer::~ScriptedServer() {
  requests();
  ::close(listener_);
}

std::string ScriptedServer::url() const {
  return "http://127.0.0.1:" + std::to_string(port_);
}

const std::vector<std::string>& ScriptedServer::requests() {
  ::shutdown(listener_, SHUT_RDWR);
  if (thread_.joinable()) thread_.join();
  return requests_;
}

void ScriptedServer::serve() {
  int connection = -1;
  for (const Turn& turn : turns_) {
    if (connection < 0 && wait_readable(listener_)) connection = ::accept(listener_, nullptr, nullptr);
    const std::string request = connection < 0 ? "" : read_request(connection);
    if (request.empty()) break;
    requests_.push_back(request);
    std::this_thread::sleep_for(turn.silence);  // what is tested is that the other side does not wait for it
    static_cast<void>(::send(connection, turn.answer.data(), turn.answer.size(), MSG_NOSIGNAL));
    if (turn.stays_open) continue;
    const linger at_once{1, 0};
    if (turn.resets) ::setsockopt(connection, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    ::close(std::exchange(connection, -1));
  }
  if (connection >= 0) ::close(connection);
}

std::string ScriptedServer::read_request(int connection) const {
  std::string request;
  size_t wanted = std::string::npos;
  while (request.size() < wanted) {
    char buffer[4096];
    const ssize_t count = wait_readable(connection) ? ::recv(connection, buffer, sizeof buffer, 0) : 0;
    if (count <= 0) return "";
    request.append(buffer, static_cast<size_t>(count));
    if (const auto end = request.find("\r\n\r\n"); end != std::string::npos)
      wanted = end + 4 + body_size(request.substr(0, end + 2));
  }
  return request;
}

std::string http_answer(const std::string& status, const std::string& body, const std::string& headers) {
  return "HTTP/1.1 " + status + "\r\nContent-Type: application/json\r\n" + headers +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

}  // namespace trainyard::kube
