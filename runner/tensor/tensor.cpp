#include "tensor/tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "tensor/accelerator.h"
#include "tensor/capture.h"
#include "tensor/device_memory.h"

namespace trainyard {

int64_t count_of(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

std::string to_string(const Shape& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

namespace {

/// Null: what the process's own allocator holds, or nobody.
std::shared_ptr<DeviceMemory> memory_for(Device device, HostMemory host) {
  if (dry_run()) return nullptr;
  if (device.kind != DeviceKind::Cpu) return current_memory_of(device);
  return host == HostMemory::Pinned && cuda_devices() > 0 ? pinned_memory() : nullptr;
}

HostAccess access_of(DType dtype) {
  return is_floating(dtype) ? HostAccess::None : HostAccess::ReadsAndWrites;
}

}  // namespace

Storage::Storage(size_t bytes, Device device, HostAccess access, HostMemory host, Device owner)
    : bytes_(bytes),
      device_(device),
      owner_(owner),
      host_(host),
      is_dry_(dry_run() != nullptr),
      access_(access),
      kind_(current_memory_kind()),
      ledger_(current_ledger()) {
  materialize();
}

void Storage::release() noexcept {
  if (!data_) return;
  if (is_dry_)
    give_addresses_back(data_, std::max<size_t>(bytes_, 1), access_);
  else if (memory_)
    std::exchange(memory_, nullptr)->free(data_, bytes_, kind_);  // a graph's may go with it
  else
    free_host(data_, bytes_);
  data_ = nullptr;
  if (ledger_) ledger_->remove(bytes_, kind_);
}

void Storage::materialize() {
  if (data_) return;
  const size_t bytes = std::max<size_t>(bytes_, 1);
  if (!is_dry_) memory_ = memory_for(device_, host_);  // that of a device may be another than the last time
  if (is_dry_)
    data_ = static_cast<std::byte*>(reserve_addresses(bytes, access_));
  else if (memory_)
    data_ = static_cast<std::byte*>(memory_->allocate(bytes_, kind_, current_stream(owner_)));
  else
    data_ = static_cast<std::byte*>(allocate_host(bytes));
  if (ledger_) ledger_->add(bytes_, kind_);
}

void Storage::materialize_at(std::byte* address, const std::shared_ptr<DeviceMemory>& memory) {
  data_ = address;
  memory_ = memory;
  memory_->ledger().add(bytes_, kind_);
  if (ledger_) ledger_->add(bytes_, kind_);
}

void Storage::set_kind(MemoryKind kind) {
  if (ledger_ && data_) ledger_->move(bytes_, kind_, kind);
  if (memory_ && data_) memory_->ledger().move(bytes_, kind_, kind);
  kind_ = kind;
}

std::shared_ptr<StreamUse> Storage::used_on(StreamId stream) {
  return memory_ && data_ ? memory_->used_on(data_, stream) : nullptr;
}

Tensor Tensor::empty(Shape shape, DType dtype, Device device) {
  if (std::any_of(shape.begin(), shape.end(), [](int64_t size) { return size < 0; }))
    throw std::invalid_argument(fmt::format("Tensor: negative size in {}", to_string(shape)));
  const auto bytes = static_cast<size_t>(count_of(shape)) * size_of(dtype);
  return view(std::make_shared<Storage>(bytes, device, access_of(dtype)), 0, std::move(shape), dtype);
}

Tensor Tensor::zeros(Shape shape, DType dtype, Device device) {
  Tensor made = empty(std::move(shape), dtype, device);
  if (dry_run()) return made;  // its addresses read zeros as they are
  if (device.kind == DeviceKind::Cpu)
    std::memset(made.raw(), 0, made.bytes());
  else
    accelerator()->set_zero(current_stream(device), made.raw(), made.bytes());
  return made;
}

Tensor Tensor::pinned(Shape shape, DType dtype, Device owner) {
  const auto bytes = static_cast<size_t>(count_of(shape)) * size_of(dtype);
  return view(std::make_shared<Storage>(bytes, owner, access_of(dtype), HostMemory::Pinned), 0, std::move(shape),
              dtype);
}

Tensor Tensor::from_bytes(std::span<const std::byte> bytes, Shape shape, DType dtype) {
  Tensor made = empty(std::move(shape), dtype);
  if (made.bytes() != bytes.size())
    throw std::invalid_argument(
        fmt::format("Tensor: {} bytes given for {} of {}", bytes.size(), to_string(made.shape_), name_of(dtype)));
  if (!bytes.empty()) std::memcpy(made.raw(), bytes.data(), bytes.size());
  return made;
}

Tensor Tensor::view(std::shared_ptr<Storage> storage, size_t byte_offset, Shape shape, DType dtype) {
  Tensor made;
  made.count_ = count_of(shape);
  made.storage_ = std::move(storage);
  made.byte_offset_ = byte_offset;
  made.shape_ = std::move(shape);
  made.dtype_ = dtype;
  if (byte_offset + made.bytes() > made.storage_->bytes())
    throw std::invalid_argument(fmt::format("Tensor: {} of {} at byte {} reaches past a storage of {} bytes",
                                            to_string(made.shape_), name_of(dtype), byte_offset,
                                            made.storage_->bytes()));
  return made;
}

int64_t Tensor::size(int dim) const {
  const int index = dim < 0 ? dim + rank() : dim;
  if (index < 0 || index >= rank())
    throw std::invalid_argument(fmt::format("Tensor: dimension {} of shape {}", dim, to_string(shape_)));
  return shape_[static_cast<size_t>(index)];
}

Tensor Tensor::rows(int64_t begin, int64_t count) const {
  if (shape_.empty() || begin < 0 || count < 0 || begin + count > shape_[0])
    throw std::invalid_argument(
        fmt::format("Tensor: rows {} to {} of shape {}", begin, begin + count, to_string(shape_)));
  Shape shape = shape_;
  shape[0] = count;
  const int64_t row_count = shape_[0] == 0 ? 0 : count_ / shape_[0];
  return view(storage_, byte_offset_ + static_cast<size_t>(begin * row_count) * size_of(dtype_), std::move(shape),
              dtype_);
}

Tensor Tensor::reshape(Shape shape) const {
  if (count_of(shape) != count_)
    throw std::invalid_argument(fmt::format("Tensor: reshape of {} to {}", to_string(shape_), to_string(shape)));
  return view(storage_, byte_offset_, std::move(shape), dtype_);
}

void* Tensor::checked(DType wanted) const {
  if (wanted != dtype_)
    throw std::invalid_argument(fmt::format("Tensor: {} elements read as {}", name_of(dtype_), name_of(wanted)));
  if (device().kind != DeviceKind::Cpu && !dry_run())  // of which every address is one of the host
    throw std::invalid_argument(fmt::format("Tensor: elements on {} read by the host", to_string(device())));
  return storage_ ? storage_->data() + byte_offset_ : nullptr;
}

namespace {

void require_alike(const Tensor& from, const Tensor& to) {
  if (from.dtype() != to.dtype() || from.count() != to.count())
    throw std::invalid_argument(fmt::format("copy: {} {} to {} {}", name_of(from.dtype()), to_string(from.shape()),
                                            name_of(to.dtype()), to_string(to.shape())));
  const bool is_between_devices = from.device().kind != DeviceKind::Cpu && to.device().kind != DeviceKind::Cpu;
  if (is_between_devices && from.device() != to.device())
    throw std::invalid_argument(
        fmt::format("copy: from {} to {}; go by way of the host", to_string(from.device()), to_string(to.device())));
}

}  // namespace

void copy_async(const Tensor& from, Tensor& to) {
  require_alike(from, to);
  if (DryRun* const run = dry_run()) {
    if (from.device() != to.device()) run->transfer(from.bytes());
    return;
  }
  if (from.count() == 0 || from.raw() == to.raw()) return;
  const Device device = from.device().kind == DeviceKind::Cpu ? to.device() : from.device();
  if (device.kind == DeviceKind::Cpu) {
    std::memmove(to.raw(), from.raw(), from.bytes());
    return;
  }
  if (graph_being_captured() && from.device() != to.device())
    throw std::logic_error(
        "a graph of a device's work cannot have the host's memory in it, which is another each time");
  const StreamId stream = current_stream(device);
  accelerator()->copy(stream, to.raw(), from.raw(), from.bytes());
  from.storage()->used_on(stream);
  to.storage()->used_on(stream);
}

void copy(const Tensor& from, Tensor& to) {
  copy_async(from, to);
  if (from.device() == to.device() || from.count() == 0 || dry_run()) return;
  // Also where the host is read: CUDA promises no more that it has done so at the return.
  synchronize(to.device().kind == DeviceKind::Cpu ? from.device() : to.device());
}

Tensor empty_like(const Tensor& tensor) {
  return Tensor::empty(tensor.shape(), tensor.dtype(), tensor.device());
}

Tensor on_device(const Tensor& tensor, Device device) {
  if (tensor.device() == device) return tensor;
  Tensor there = Tensor::empty(tensor.shape(), tensor.dtype(), device);
  if (dry_run() || device.kind == DeviceKind::Cpu || tensor.device().kind != DeviceKind::Cpu) {
    copy(tensor, there);
    return there;
  }
  // It goes by way of pinned memory, from which the device reads when it comes to it; from other memory the host would
  // wait.
  Tensor pinned = Tensor::pinned(tensor.shape(), tensor.dtype());
  copy(tensor, pinned);
  copy_async(pinned, there);
  return there;
}

}  // namespace trainyard
