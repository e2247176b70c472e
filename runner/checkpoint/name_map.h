#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/weights.h"

namespace trainyard::checkpoint {

/// How somebody's names become the model's (docs/checkpoints.md, "A map of names"):
///
///   rename:
///     - {from: "transformer.h.{n}.ln_1.weight", to: "model.layers.{n}.input_layernorm.weight"}
///   split:      # rows of one tensor, in this order, are several of the model's
///     - {from: "transformer.h.{n}.qkv.weight", to: ["model.layers.{n}.self_attn.q_proj.weight", …]}
///   transpose:  # of the model's names: stored [in, out]
///     - "model.layers.{n}.self_attn.{which}.weight"
///
/// {word} stands for text without a dot, {word...} for any text; the same word stands for the same text in `to`.
/// Names that no rule matches are the model's own.
class NameMap {
 public:
  struct Rule {
    int line;  ///< of the file
    std::string from;
    std::vector<std::string> to;
  };

  /// Throws InputError, "<file>:<line>: …": not of this form, or a word in `to` that `from` lacks.
  explicit NameMap(const std::filesystem::path& file);

  [[nodiscard]] const std::vector<Rule>& rules() const { return rules_; }
  [[nodiscard]] bool is_transposed(const std::string& name) const;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  std::vector<Rule> rules_;
  std::vector<std::string> transposed_;  ///< patterns
};

/// A tensor that the model wants.
struct Wanted {
  std::string name;
  Shape shape;
};

/// `stored` under the model's names. `wanted` tells how a split divides its rows.
/// Throws InputError, naming rule and tensors: a rule that matches nothing, two tensors that become one name, a split
/// whose parts do not add up to the stored rows.
std::unique_ptr<Weights> mapped(std::unique_ptr<Weights> stored, const NameMap& map, const std::vector<Wanted>& wanted);

}  // namespace trainyard::checkpoint
