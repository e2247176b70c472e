#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kube/alive.h"
#include "kube/event_loop.h"
#include "kube/exec_plugin.h"
#include "kube/kubeconfig.h"
#include "kube/result.h"
#include "kube/subprocess.h"

namespace trainyard::kube {

/// What a request goes out with. Equal `serial`s are the same credential.
struct Credential {
  uint64_t serial = 0;
  std::string token;
  std::shared_ptr<const Endpoint> endpoint;
  std::vector<std::string> headers;
};

/// The identity's present credential: files are read again when they are a minute old, a plugin runs again when its
/// answer expires, and both when a server answered 401 or was not trusted, since authorities are renewed, too. One
/// thread.
class Credentials {
 public:
  using Ready = std::function<void(Result<Credential>)>;
  Credentials(EventLoop& loop, Config config);

  /// Calls `ready` at once where the credential is at hand, else when the plugin has answered.
  void get(Ready ready);
  /// The server refused it, or was not trusted by it: the next get() reads anew, unless somebody's has already.
  void reject(uint64_t serial);

 private:
  [[nodiscard]] bool is_fresh() const;
  void read_files();
  void run_plugin();
  void finish_plugin(const Subprocess::Ended& ended);
  void settle(std::optional<ApiError> error);
  void use(std::string token, std::string certificate_pem, std::string key_pem);

  EventLoop& loop_;
  Config config_;
  Credential current_;
  bool has_current_ = false;
  EventLoop::Clock::time_point read_at_{};
  std::optional<TimePoint> expires_;
  std::unique_ptr<Subprocess> plugin_;
  std::vector<Ready> waiting_;
  Alive alive_;
};

}  // namespace trainyard::kube
