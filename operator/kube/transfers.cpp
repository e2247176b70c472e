#include "kube/transfers.h"

#include <algorithm>
#include <utility>

namespace trainyard::kube {

Transfers::Transfers(EventLoop& loop) : loop_(loop) {
  open_connections();
}

void Transfers::open_connections() {
  current_ = std::make_unique<CurlMulti>(loop_);
  current_->on_finished = [this, connections = current_.get()](Trouble trouble, auto started) {
    judge(*connections, trouble, started);
  };
}

uint64_t Transfers::start(std::shared_ptr<const Endpoint> endpoint, Transfer transfer, CurlTransfer::Done done,
                          CurlTransfer::Data on_data) {
  const uint64_t id = ++last_id_;
  current_->start(std::make_unique<CurlTransfer>(id, std::move(endpoint), std::move(transfer), std::move(done),
                                                 std::move(on_data)));
  return id;
}

void Transfers::cancel(uint64_t id) {
  if (current_->cancel(id)) return;
  for (const auto& connections : draining_)
    if (connections->cancel(id)) break;
  if (!draining_.empty()) loop_.post(alive_.guard([this] { close_drained(); }));
}

void Transfers::judge(CurlMulti& connections, Trouble trouble, EventLoop::Clock::time_point started) {
  if (trouble == Trouble::TimedOut && &connections == current_.get()) {
    draining_.push_back(std::move(current_));
    open_connections();
  }
  if (trouble == Trouble::TimedOut && connections.last_heard() < started)
    loop_.post(alive_.guard([this, suspect = &connections] {
      const auto found = std::find_if(draining_.begin(), draining_.end(), [&](auto& c) { return c.get() == suspect; });
      if (found != draining_.end()) suspect->abandon("the server has been silent; the connection is taken for dead");
      close_drained();
    }));
  // Later: it is one of these that is calling.
  if (!draining_.empty()) loop_.post(alive_.guard([this] { close_drained(); }));
}

void Transfers::close_drained() {
  std::erase_if(draining_, [](const auto& connections) { return connections->is_idle(); });
}

}  // namespace trainyard::kube
