#pragma once

#include <utility>

#include "tensor/stream_graph.h"
#include "tensor/tensor.h"

namespace trainyard::nn {

/// A tensor that the host makes and that is the same for the same key: positions, buckets, tables. It is made, and
/// copied to the device that wants it, once for each run of equal keys.
template <typename Key>
class Remembered {
 public:
  template <typename Make>
  const Tensor& get(const Key& key, Device device, Make&& make) {
    if (!tensor_.defined() || key_ != key || tensor_.device() != device) {
      StreamGraph::outside([&] { tensor_ = on_device(std::forward<Make>(make)(), device); });
      key_ = key;
    }
    StreamGraph::keep(tensor_);
    return tensor_;
  }

 private:
  Key key_{};
  Tensor tensor_;
};

}  // namespace trainyard::nn
