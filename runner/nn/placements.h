#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trainyard::nn {

/// How tensor parallelism splits a module among ranks (Shoeybi et al. 2019).
enum class Placement {
  Column,      ///< a linear layer's outputs: rows of its weight, and its bias. Its input is whole on every rank
  Row,         ///< a linear layer's inputs: columns of its weight. The sum of what the ranks give is its output
  Vocabulary,  ///< rows of a table: an embedding, whose output is then such a sum, or a head
  Region,      ///< a module of column layers and a row layer: its input is made whole, its output is such a sum
  Encoder,     ///< a module whose output all ranks need whole
};

/// What is never divided among ranks.
enum class Unit { Element, QueryHead, KeyValueHead };

/// A line of a model's table: the modules whose names the glob matches, and how they are split. What no line names is
/// replicated: each rank has it whole.
struct ModulePlacement {
  std::string modules;
  Placement placement;
  Unit unit = Unit::Element;

  [[nodiscard]] bool splits_weights() const {
    return placement != Placement::Region && placement != Placement::Encoder;
  }
};

/// A model's table; empty: it has no tensor dimension.
using Placements = std::vector<ModulePlacement>;

/// The first line that names the module; null: none.
const ModulePlacement* placement_of(const Placements& placements, std::string_view module);
/// The line that splits a parameter; null: none.
const ModulePlacement* placement_of_weight(const Placements& placements, std::string_view parameter);

std::string_view name_of(Placement placement);  ///< "column"

}  // namespace trainyard::nn
