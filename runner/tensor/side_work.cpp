#include "tensor/side_work.h"

#include <map>
#include <utility>

#include "tensor/caching_allocator.h"

namespace trainyard {
namespace {

const Stream& side_stream(SideWork::Direction direction, Device device) {
  thread_local std::map<std::pair<int, SideWork::Direction>, Stream> streams;
  return streams.try_emplace({device.index, direction}, device).first->second;
}

}  // namespace

SideWork::SideWork(Direction direction, Device device, std::vector<Tensor> tensors, const std::function<void()>& work)
    : device_(device), tensors_(std::move(tensors)) {
  if (device_.kind == DeviceKind::Cpu) {
    work();
    return;
  }
  if (DryRun* const run = dry_run()) {
    run->begin_side_work(static_cast<int>(direction));
    work();
    dry_end_ = run->end_side_work();
    return;
  }
  const Event ready(device_);  // what the current stream has been given
  const StreamScope scope(side_stream(direction, device_));
  ready.gate();
  work();
  for (const Tensor& tensor : tensors_)
    if (auto use = tensor.storage()->used_on(current_stream(device_))) uses_.push_back(std::move(use));
  end_.emplace(device_);
}

void SideWork::wait() {
  if (end_) end_->gate();
  if (DryRun* const run = dry_run(); run && dry_end_) run->wait_until(*dry_end_);
  for (const auto& use : uses_) use->is_behind(current_stream(device_));
  *this = {};
}

}  // namespace trainyard
