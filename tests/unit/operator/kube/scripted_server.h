#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace trainyard::kube {

/// A server of HTTP/1.1 on the loopback that does with each connection what a test says: a real socket whose other end
/// misbehaves to order. What it was sent is there to look at once it has been joined.
class ScriptedServer {
 public:
  /// One connection: reads a whole request, then sends `answer` and closes.
  struct Turn {
    std::string answer;                    ///< "": closes without one
    bool stays_open = false;               ///< for the next request of this connection, which the next turn answers
    bool resets = false;                   ///< RST instead of FIN
    std::chrono::milliseconds silence{0};  ///< before the answer
  };

  explicit ScriptedServer(std::vector<Turn> turns);
  ~ScriptedServer();
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  [[nodiscard]] std::string url() const;
  /// Ends it; the requests that came, whole.
  const std::vector<std::string>& requests();

 private:
  void serve();
  [[nodiscard]] std::string read_request(int connection) const;

  std::vector<Turn> turns_;
  int listener_ = -1;
  uint16_t port_ = 0;
  std::vector<std::string> requests_;
  std::thread thread_;
};

/// "HTTP/1.1 STATUS\r\n…" with the body's length.
[[nodiscard]] std::string http_answer(const std::string& status, const std::string& body,
                                      const std::string& headers = "");

}  // namespace trainyard::kube
