#pragma once

#include <array>
#include <compare>
#include <deque>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "ops/cuda/cudnn.h"

// cuDNN's graphs: operations on tensors, of which those that are in no memory are never written. cuDNN looks for one
// kernel that does all of them, and refuses where it has none.
namespace trainyard::ops::cuda {

/// cuDNN on one device.
struct CudnnDevice {
  const Cudnn& library;
  int index;
  cudnnHandle_t handle;
};

template <typename T>
constexpr cudnnBackendAttributeType_t kAttributeType = T::no_attribute_of_that_type;
template <>
inline constexpr cudnnBackendAttributeType_t kAttributeType<bool> = CUDNN_TYPE_BOOLEAN;
template <>
inline constexpr cudnnBackendAttributeType_t kAttributeType<int64_t> = CUDNN_TYPE_INT64;
template <>
inline constexpr cudnnBackendAttributeType_t kAttributeType<cudnnHandle_t> = CUDNN_TYPE_HANDLE;
template <>
inline constexpr cudnnBackendAttributeType_t kAttributeType<cudnnDataType_t> = CUDNN_TYPE_DATA_TYPE;
template <>
inline constexpr cudnnBackendAttributeType_t kAttributeType<cudnnBackendHeurMode_t> = CUDNN_TYPE_HEUR_MODE;
template <>
inline constexpr cudnnBackendAttributeType_t kAttributeType<cudnnPointwiseMode_t> = CUDNN_TYPE_POINTWISE_MODE;
template <>
inline constexpr cudnnBackendAttributeType_t kAttributeType<cudnnReduceTensorOp_t> = CUDNN_TYPE_REDUCTION_OPERATOR_TYPE;

/// A descriptor of the backend API: attributes are set, then it is finalized, then others take it as an attribute.
/// What cuDNN does not take throws as check() does.
class Descriptor {
 public:
  Descriptor(const CudnnDevice& on, cudnnBackendDescriptorType_t type);
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : on_(other.on_), handle_(std::exchange(other.handle_, nullptr)) {}
  Descriptor& operator=(Descriptor&&) = delete;

  template <typename T>
  Descriptor& set(cudnnBackendAttributeName_t name, std::span<const T> values) {
    set(name, kAttributeType<T>, static_cast<int64_t>(values.size()), values.data());
    return *this;
  }
  template <typename T>
  Descriptor& set(cudnnBackendAttributeName_t name, const T& value) {
    return set(name, std::span<const T>(&value, 1));
  }
  Descriptor& set(cudnnBackendAttributeName_t name, const Descriptor& part) {
    return set(name, std::span<const cudnnBackendDescriptor_t>(&part.handle_, 1));
  }
  Descriptor& set(cudnnBackendAttributeName_t name, std::span<const cudnnBackendDescriptor_t> parts) {
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<int64_t>(parts.size()), parts.data());
    return *this;
  }
  Descriptor& set_addresses(cudnnBackendAttributeName_t name, std::span<void* const> addresses) {
    set(name, CUDNN_TYPE_VOID_PTR, static_cast<int64_t>(addresses.size()), addresses.data());
    return *this;
  }
  void finalize();

  [[nodiscard]] int64_t number(cudnnBackendAttributeName_t name) const;
  /// Fills `found`, descriptors of the right type, and returns how many it has filled.
  size_t get(cudnnBackendAttributeName_t name, std::span<cudnnBackendDescriptor_t> found) const;
  [[nodiscard]] cudnnBackendDescriptor_t handle() const { return handle_; }

 private:
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count, const void* values);

  const CudnnDevice* on_;
  cudnnBackendDescriptor_t handle_ = nullptr;
};

/// [batch, heads, rows, columns], strides in elements.
struct Layout {
  std::array<int64_t, 4> sizes, strides;

  static Layout packed(const std::array<int64_t, 4>& sizes);
  /// Rows and columns by each other's names; nothing moves.
  [[nodiscard]] Layout transposed() const;
};

/// A tensor of a graph.
struct Node {
  Layout layout;
  Descriptor descriptor;
};
using Value = const Node*;  ///< it lives as long as its graph

/// How many rows, columns and inner elements of a product count, a number a batch row; null: all.
struct Counted {
  Value rows = nullptr, columns = nullptr, inner = nullptr;
};

/// The addresses of a graph's tensors in memory by their ids; 16-byte aligned but for those of int32.
using Addresses = std::map<int64_t, void*>;

class Plan;

class Graph {
 public:
  explicit Graph(const CudnnDevice& on) : on_(&on) {}

  /// The value lies in memory; `id` is from 1 on and below 1000.
  Value memory(int64_t id, cudnnDataType_t type, const Layout& layout);
  Value temporary(const Layout& layout, cudnnDataType_t type = CUDNN_DATA_FLOAT);
  /// The same for every element.
  Value number(float value);

  // Each computes in float32 unless it says otherwise, and returns `to`.
  Value matmul(Value a, Value b, Value to, const Counted& counted = {});
  /// It takes one to three operands, and repeats sizes of 1. BINARY_SELECT takes the first where the third is true.
  Value pointwise(cudnnPointwiseMode_t mode, std::initializer_list<Value> operands, Value to,
                  cudnnDataType_t compute = CUDNN_DATA_FLOAT);
  /// The index of each element along an axis.
  Value index(int64_t axis, Value like, cudnnDataType_t compute);
  /// It reduces over the elements, or groups of heads, by which `to` is smaller.
  Value reduce(cudnnReduceTensorOp_t operation, Value x, Value to);
  /// The elements of x where they lie, by another layout; rounded to the type of `to`.
  Value view(Value x, Value to);

  /// Throws CudnnRefusal where cuDNN has no kernel for it.
  Plan plan() &&;

 private:
  friend class Plan;
  Value add(int64_t id, cudnnDataType_t type, const Layout& layout, bool is_virtual, bool is_number);
  Descriptor& part(cudnnBackendDescriptorType_t type) { return parts_.emplace_back(*on_, type); }
  void operation(Descriptor& made);

  const CudnnDevice* on_;
  std::deque<Node> nodes_;
  std::deque<Descriptor> parts_;
  std::vector<cudnnBackendDescriptor_t> operations_;
  std::map<int64_t, float> numbers_;
  int64_t next_id_ = 1000;
};

/// A graph and the kernel that cuDNN has for it.
class Plan {
 public:
  explicit Plan(Graph graph);

  [[nodiscard]] int64_t workspace_bytes() const { return workspace_bytes_; }
  /// It queues the work on `stream` and returns at once. One thread at a time may call it for each device.
  void run(cudaStream_t stream, const Addresses& addresses, void* workspace) const;

 private:
  Graph graph_;
  Descriptor kernel_;
  int64_t workspace_bytes_ = 0;
};

}  // namespace trainyard::ops::cuda
