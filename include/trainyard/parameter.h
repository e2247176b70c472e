#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trainyard/export.h"

namespace trainyard::fsdp {

struct ModelState;

enum class DType { Float32, BFloat16, Float16 };

/// "float32", "bfloat16", "float16".
[[nodiscard]] TRAINYARD_EXPORT std::string to_string(DType dtype);

/// How a parameter lies over one dimension of the mesh: DTensor's Shard(0), or Replicate().
enum class Placement { Shard0, Replicate };

/// One parameter of a model: what DTensor is to FSDP2. Cheap to copy; valid as long as its model.
class TRAINYARD_EXPORT Parameter {
 public:
  Parameter(std::shared_ptr<ModelState> model, std::size_t number) : model_(std::move(model)), number_(number) {}

  /// The name that checkpoints have for it: "layers.0.attention.wq.weight".
  [[nodiscard]] std::string name() const;
  [[nodiscard]] std::vector<std::int64_t> shape() const;
  /// The shape of this rank's rows, as torch.chunk deals them: the last ranks may have fewer or none.
  [[nodiscard]] std::vector<std::int64_t> local_shape() const;
  /// One a dimension of the mesh: {Shard0} fully sharded, {Replicate, Shard0} hybrid. Empty before fully_shard().
  [[nodiscard]] std::vector<Placement> placements() const;
  /// The dtype that the model would compute with now: float32 while sharded, the policy's param_dtype while unsharded.
  [[nodiscard]] DType dtype() const;

  /// This rank's rows, row by row.
  [[nodiscard]] std::vector<float> to_local() const;
  /// Their gradient, after backward(). Throws std::logic_error where there is none.
  [[nodiscard]] std::vector<float> local_gradient() const;
  /// All rows, on every rank. Collective.
  [[nodiscard]] std::vector<float> full_tensor() const;

 private:
  std::shared_ptr<ModelState> model_;
  std::size_t number_;
};

}  // namespace trainyard::fsdp
