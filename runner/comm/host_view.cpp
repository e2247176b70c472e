#include "comm/host_view.h"

namespace trainyard::comm {

HostView::HostView(const Tensor& tensor, Use use) : tensor_(tensor), use_(use) {
  if (tensor_.device().kind == DeviceKind::Cpu) return;
  const MemoryScope uncounted(nullptr);  // as what gloo takes: a plan is of what the run holds
  pinned_ = Tensor::pinned(tensor_.shape(), tensor_.dtype());
  if (use_ != Use::Written) copy_async(tensor_, pinned_);
  issued_.emplace(tensor_.device());
}

std::span<std::byte> HostView::bytes() {
  if (issued_) issued_->wait();
  Tensor& host = issued_ ? pinned_ : tensor_;
  return {host.raw(), host.bytes()};
}

void HostView::give_back() {
  if (!issued_ || use_ == Use::Read) return;
  // The copy has a stream of its own: on the compute stream it would come after all that was queued there meanwhile.
  const Stream copies(tensor_.device());
  const StreamScope scope(copies);
  copy_async(pinned_, tensor_);
  synchronize(tensor_.device());
}

}  // namespace trainyard::comm
