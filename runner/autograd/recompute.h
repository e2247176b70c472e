#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "autograd/tape.h"
#include "tensor/side_work.h"

namespace trainyard::autograd {

/// What a recomputed region keeps for backward, and where.
struct Retention {
  enum class Keep : uint8_t {
    Inputs,    ///< nothing else: all of it is computed again
    Products,  ///< and the outputs of matrix products and attention; what is cheap is computed again
  } keep = Keep::Inputs;
  bool offload = false;  ///< in host memory
};

/// Computes body(inputs) and keeps nothing for backward but what `retention` says; backward runs `body` again,
/// recorded, and goes back through that. Bit-equal to running it recorded at once. `body` runs twice and must do the
/// same both times. Inputs are on one tape; on none, it is just body(inputs).
Variable checkpoint(std::vector<Variable> inputs, std::function<Variable(std::span<const Variable>)> body,
                    Retention retention = {});
/// The same for a body of one input.
Variable checkpoint(const Variable& x, std::function<Variable(const Variable&)> body, Retention retention = {});

/// What `compute` gives, for an operation that is worth keeping when its region is computed again (matrix products,
/// attention): the second pass of a region with Keep::Products gets what its first pass computed.
std::vector<Tensor> kept(const std::function<std::vector<Tensor>()>& compute);

/// A tensor that backward needs and nobody before: the one place from which activations leave a device for host memory
/// and come back, both behind compute. A CPU's are there already, so only the ledger sees it go.
class Parked {
 public:
  Parked(Tensor tensor, bool offload);
  /// Begins to bring it back.
  void prefetch();
  /// The tensor, on its device. Once.
  [[nodiscard]] Tensor fetch();

 private:
  Tensor tensor_;  // where it was; undefined while it is in host memory alone
  Tensor host_;
  Device device_;
  std::shared_ptr<SideWork> leaving_;
  SideWork returning_;
};

}  // namespace trainyard::autograd
