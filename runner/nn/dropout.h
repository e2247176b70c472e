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
  int64_t tokens = 0;  ///< of a row; 0: each value has all tokens of its rows
  int piece = 0;       ///< with tokens: the piece of them that a value of a block has
};

/// A place in a model where values are dropped; its name tells it from the others.
class DropoutSite {
 public:
  explicit DropoutSite(const std::string& name) : site_(hash_of(name)) {}
  [[nodiscard]] ops::Dropout in(const DropoutContext& context) const {
    return {context.rate, context.seed ^ site_, context.sequences};
  }
  autograd::Variable operator()(const autograd::Variable& x, const DropoutContext& context) const {
    ops::Dropout dropout = in(context);
    dropout.tokens = context.tokens, dropout.first_token = context.piece * x.value().size(0);
    return autograd::dropout(x, dropout);
  }
  /// The same of all tokens, but only of the columns from `first` on.
  [[nodiscard]] autograd::Variable of_columns(const autograd::Variable& x, const DropoutContext& context,
                                              int64_t first) const {
    ops::Dropout dropout = in(context);
    dropout.tokens = context.tokens, dropout.first_column = first;
    return autograd::dropout(x, dropout);
  }

 private:
  uint64_t site_;
};

}  // namespace trainyard::nn
