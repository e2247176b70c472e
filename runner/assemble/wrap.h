#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "nn/module.h"

// Which modules are gathered and reduced together: PyTorch's auto-wrap policies on our module tree.
namespace trainyard::train {

struct Wrap {
  enum class Policy {
    Transformer,  ///< a group for each module of the named classes (TRANSFORMER_BASED_WRAP)
    Size,         ///< a group wherever min_num_params come together (SIZE_BASED_WRAP)
    None,         ///< one group, the whole model (NO_WRAP)
  } policy = Policy::Transformer;
  std::vector<std::string> classes;  ///< as transformers names them; empty: the model's blocks
  int64_t min_num_params = 100'000'000;
};

/// The modules of each group but the last, which is the whole model; innermost first, in the order of the forward.
using Groups = std::vector<std::vector<nn::Module*>>;

/// `blocks`: what Transformer wraps where no class is named. Throws InputError for a class that is not in the model,
/// naming those that are.
Groups groups_of(nn::Module& model, const std::vector<nn::Module*>& blocks, const Wrap& wrap);

/// Neighbouring groups put together from the last on until each has `bucket_bytes` of float32, as DDP fills its
/// buckets: gradients come in that order, and each message is worth its latency. Only those that are `alike` come
/// together. Nested groups stay as they are.
Groups in_buckets(const Groups& groups, int64_t bucket_bytes,
                  const std::function<bool(const nn::Module&, const nn::Module&)>& alike);

}  // namespace trainyard::train
