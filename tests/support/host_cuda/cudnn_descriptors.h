#pragma once

#include <cudnn.h>

#include <array>
#include <cstring>
#include <map>
#include <string>
#include <vector>

// What a graph of cuDNN is made of: descriptors with attributes, and the tensors that some of them describe.
namespace host_cudnn {

constexpr size_t kElements = 4;  // of sizes and strides: [batch, heads, rows, columns]
using Four = std::array<int64_t, kElements>;

/// What a call does not take; the status that it returns.
struct Refusal {
  cudnnStatus_t status;
  std::string why;
};
[[noreturn]] inline void wrong(const std::string& why) {
  throw Refusal{CUDNN_STATUS_BAD_PARAM, why};
}
inline void require(bool is_right, const std::string& why) {
  if (!is_right) wrong(why);
}
inline void require_supported(bool is_supported, const std::string& why) {
  if (!is_supported) throw Refusal{CUDNN_STATUS_NOT_SUPPORTED, why};
}

struct Descriptor {
  cudnnBackendDescriptorType_t type;
  bool is_finalized = false;
  std::map<cudnnBackendAttributeName_t, std::vector<std::byte>> attributes = {};
  const Descriptor* graph = nullptr;  ///< of a proposal and of a plan

  [[nodiscard]] bool has(cudnnBackendAttributeName_t name) const { return attributes.contains(name); }

  template <typename T>
  [[nodiscard]] std::vector<T> all(cudnnBackendAttributeName_t name) const {
    const auto found = attributes.find(name);
    require(found != attributes.end(), "attribute " + std::to_string(name) + " is not set");
    std::vector<T> values(found->second.size() / sizeof(T));
    std::memcpy(values.data(), found->second.data(), found->second.size());
    return values;
  }
  template <typename T>
  [[nodiscard]] T one(cudnnBackendAttributeName_t name) const {
    T value;
    const std::vector<std::byte>& bytes = attributes.at(name);
    std::memcpy(&value, bytes.data(), sizeof(T));
    return value;
  }
  [[nodiscard]] const Descriptor& part(cudnnBackendAttributeName_t name) const {
    require(has(name), "descriptor " + std::to_string(name) + " is not set");
    const auto* const found = one<const Descriptor*>(name);
    require(found && found->is_finalized, "descriptor " + std::to_string(name) + " is not finalized");
    return *found;
  }
};

struct Tensor {
  int64_t id;
  cudnnDataType_t type;
  Four sizes, strides;
  int64_t alignment;
  bool is_virtual, is_number;

  explicit Tensor(const Descriptor& from)
      : id(from.one<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID)),
        type(from.one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE)),
        sizes(from.one<Four>(CUDNN_ATTR_TENSOR_DIMENSIONS)),
        strides(from.one<Four>(CUDNN_ATTR_TENSOR_STRIDES)),
        alignment(from.one<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT)),
        is_virtual(from.has(CUDNN_ATTR_TENSOR_IS_VIRTUAL)),
        is_number(from.has(CUDNN_ATTR_TENSOR_IS_BY_VALUE)) {}

  [[nodiscard]] size_t count() const { return static_cast<size_t>(sizes[0] * sizes[1] * sizes[2] * sizes[3]); }

  /// Where the element lies, from the first.
  [[nodiscard]] int64_t place(const Four& at) const {
    int64_t sum = 0;
    for (size_t i = 0; i < kElements; ++i) sum += at[i] * strides[i];
    return sum;
  }
};

inline bool divides(const Tensor& small, const Four& sizes) {
  for (size_t i = 0; i < kElements; ++i)
    if (sizes[i] % small.sizes[i] != 0) return false;
  return true;
}

inline std::vector<const Descriptor*> operations_of(const Descriptor& graph) {
  return graph.all<const Descriptor*>(CUDNN_ATTR_OPERATIONGRAPH_OPS);
}

}  // namespace host_cudnn
