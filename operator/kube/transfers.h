#pragma once

#include <memory>
#include <vector>

#include "kube/curl_multi.h"

namespace trainyard::kube {

/// Transfers over connections that are replaced when they are suspected: after a time-out new transfers take new
/// connections and the old ones serve out what they carry; where nothing at all was heard meanwhile they are dead, and
/// what they carry ends at once. (libcurl would go on using a connection whose peer is silent.)
class Transfers {
 public:
  explicit Transfers(EventLoop& loop);
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;

  /// Returns the transfer's id. Callbacks never run inside of start().
  uint64_t start(std::shared_ptr<const Endpoint> endpoint, Transfer transfer, CurlTransfer::Done done,
                 CurlTransfer::Data on_data = {});
  void cancel(uint64_t id);

 private:
  void open_connections();
  void judge(CurlMulti& connections, Trouble trouble, EventLoop::Clock::time_point started);
  void close_drained();

  EventLoop& loop_;
  Alive alive_;
  std::unique_ptr<CurlMulti> current_;
  std::vector<std::unique_ptr<CurlMulti>> draining_;
  uint64_t last_id_ = 0;
};

}  // namespace trainyard::kube
