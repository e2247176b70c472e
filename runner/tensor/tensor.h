#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tensor/device.h"
#include "tensor/dry_run.h"
#include "tensor/dtype.h"
#include "tensor/memory.h"

namespace trainyard {

using Shape = std::vector<int64_t>;

/// Product of the sizes; 1 for the empty shape.
int64_t count_of(const Shape& shape);

/// "[4, 96]".
std::string to_string(const Shape& shape);

class DeviceMemory;
class StreamUse;

/// Pinned: copies between it and a device run on without a stop in between. The same where there is no device.
enum class HostMemory : uint8_t { Pageable, Pinned };

/// A block of memory that tensors share. Not zeroed. Its memory can be given back and taken again while tensors still
/// refer to it: a sharding group frees its gathered parameters between uses and every tensor recorded for backward
/// finds them at the same place of the same storage afterwards.
/// One thread at a time releases or materializes; readers must be ordered with that by their own means. Memory of a
/// device, and pinned memory that is owned by one, belongs to the stream of it that was current when it was taken: work
/// on others is announced by used_on().
class Storage {
 public:
  /// `access`: what host code does with it in a dry run. Throws InputError where there is no such device; in a dry run
  /// none is needed.
  Storage(size_t bytes, Device device, HostAccess access)
      : Storage(bytes, device, access, HostMemory::Pageable, device) {}
  /// Memory of the host; `owner`: as Tensor::pinned().
  Storage(size_t bytes, Device owner, HostAccess access, HostMemory host) : Storage(bytes, {}, access, host, owner) {}
  ~Storage() { release(); }
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  /// Gives the memory back. No effect where it is released already.
  void release() noexcept;
  /// Takes memory again, content undefined. No effect where it has some. Throws std::bad_alloc, of a device
  /// OutOfMemoryError.
  void materialize();
  /// Has its memory at `address` again, which `memory` gave it before and has kept for it since it was released.
  void materialize_at(std::byte* address, const std::shared_ptr<DeviceMemory>& memory);

  [[nodiscard]] bool is_materialized() const { return data_ != nullptr; }
  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] size_t bytes() const { return bytes_; }
  [[nodiscard]] Device device() const { return device_; }
  /// What the ledger counts it as: that of the scope in which it was made, until changed here.
  [[nodiscard]] MemoryKind kind() const { return kind_; }
  void set_kind(MemoryKind kind);
  /// What `stream` has been given up to the release may still use it: nobody gets the memory before that is done, or
  /// the use is over. Null where there is nothing to end.
  std::shared_ptr<StreamUse> used_on(StreamId stream);

 private:
  Storage(size_t bytes, Device device, HostAccess access, HostMemory host, Device owner);

  size_t bytes_;
  Device device_, owner_;
  HostMemory host_;
  std::shared_ptr<DeviceMemory> memory_;  ///< of data_; null: plain host memory, or none at all
  bool is_dry_;                           ///< made in a dry run: addresses without memory
  HostAccess access_;
  MemoryKind kind_;
  std::byte* data_ = nullptr;
  std::shared_ptr<MemoryLedger> ledger_;
};

/// A contiguous, row-major view into a storage. Copying a Tensor copies the handle, not the elements.
/// `const` is of the handle and, through data(), of the elements.
class Tensor {
 public:
  /// Undefined: no storage, shape [0]. Only defined() and assignment are of use.
  Tensor() = default;

  /// New storage, elements undefined. Throws std::bad_alloc; std::invalid_argument for a negative size.
  static Tensor empty(Shape shape, DType dtype, Device device = {});
  static Tensor zeros(Shape shape, DType dtype, Device device = {});
  /// New pinned host memory. Nobody gets it again before the copies that it was given to are done; but with a device as
  /// `owner`, who is its current stream, that stream's next request does at once, as behind them it comes by itself:
  /// the host then neither reads nor writes it.
  static Tensor pinned(Shape shape, DType dtype, Device owner = {});
  /// Copies `values`, whose number must be count_of(shape).
  template <typename T>
  static Tensor from(std::span<const T> values, Shape shape) {
    return from_bytes(std::as_bytes(values), std::move(shape), DTypeOf<T>::value);
  }
  static Tensor from_bytes(std::span<const std::byte> bytes, Shape shape, DType dtype);
  /// A view into `storage` from `byte_offset` on. Throws std::invalid_argument where it does not fit.
  static Tensor view(std::shared_ptr<Storage> storage, size_t byte_offset, Shape shape, DType dtype);

  [[nodiscard]] bool defined() const { return storage_ != nullptr; }
  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] int64_t size(int dim) const;  ///< negative counts from the end
  [[nodiscard]] int rank() const { return static_cast<int>(shape_.size()); }
  [[nodiscard]] int64_t count() const { return count_; }
  [[nodiscard]] DType dtype() const { return dtype_; }
  [[nodiscard]] Device device() const { return storage_ ? storage_->device() : Device{}; }
  [[nodiscard]] size_t bytes() const { return static_cast<size_t>(count_) * size_of(dtype_); }
  [[nodiscard]] const std::shared_ptr<Storage>& storage() const { return storage_; }
  [[nodiscard]] size_t byte_offset() const { return byte_offset_; }

  /// Rows [begin, begin + rows) of dim 0: a view.
  [[nodiscard]] Tensor rows(int64_t begin, int64_t rows) const;
  /// The same elements in another shape of the same count: a view.
  [[nodiscard]] Tensor reshape(Shape shape) const;

  /// Host elements. Throws std::invalid_argument where T is not the dtype or the tensor lies on a device; the storage
  /// must be materialized.
  template <typename T>
  [[nodiscard]] T* data() {
    return static_cast<T*>(checked(DTypeOf<T>::value));
  }
  template <typename T>
  [[nodiscard]] const T* data() const {
    return static_cast<const T*>(checked(DTypeOf<T>::value));
  }
  template <typename T>
  [[nodiscard]] std::span<T> values() {
    return {data<T>(), static_cast<size_t>(count_)};
  }
  template <typename T>
  [[nodiscard]] std::span<const T> values() const {
    return {data<T>(), static_cast<size_t>(count_)};
  }
  /// The first byte, wherever it lies.
  [[nodiscard]] std::byte* raw() { return storage_->data() + byte_offset_; }
  [[nodiscard]] const std::byte* raw() const { return storage_->data() + byte_offset_; }

 private:
  [[nodiscard]] void* checked(DType wanted) const;

  std::shared_ptr<Storage> storage_;
  size_t byte_offset_ = 0;
  Shape shape_{0};
  int64_t count_ = 0;
  DType dtype_ = DType::Float32;
};

/// Copies elements of the same dtype and count; any shapes. Between host and device: done at the return. Within a
/// device: queued on the thread's current stream of it. Throws std::invalid_argument otherwise, and between two CUDA
/// devices.
void copy(const Tensor& from, Tensor& to);

/// The same without a wait: the elements are there, and a host `from` may be reused, once the current stream of the
/// device has come past.
void copy_async(const Tensor& from, Tensor& to);

/// New storage of the same shape, dtype and device, elements undefined.
Tensor empty_like(const Tensor& tensor);

/// `tensor` itself where it is on that device, else a copy there.
Tensor on_device(const Tensor& tensor, Device device);

}  // namespace trainyard
