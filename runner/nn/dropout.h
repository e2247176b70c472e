#pragma once

#include <string>

#include "autograd/functions.h"
#include "nn/init.h"

namespace trainyard::nn {

/// What a pass drops: nothing where rate is 0.
struct DropoutContext {
  float rate = 0;
  uint64_t seed = 0;  ///< of the run
  Tensor sequences;   ///< int64 [rows]
};

/// A place in a model where values are dropped; its name tells it from the others.
class DropoutSite {
 public:
  explicit DropoutSite(const std::string& name) : site_(hash_of(name)) {}
  [[nodiscard]] ops::Dropout in(const DropoutContext& context) const {
    return {context.rate, context.seed ^ site_, context.sequences};
  }
  autograd::Variable operator()(const autograd::Variable& x, const DropoutContext& context) const {
    return autograd::dropout(x, in(context));
  }

 private:
  uint64_t site_;
};

}  // namespace trainyard::nn
