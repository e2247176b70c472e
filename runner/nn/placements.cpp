#include "nn/placements.h"

#include <fnmatch.h>

#include <algorithm>
#include <stdexcept>

namespace trainyard::nn {

const ModulePlacement* placement_of(const Placements& placements, std::string_view module) {
  const std::string name(module);
  const auto line = std::ranges::find_if(
      placements, [&](const ModulePlacement& each) { return ::fnmatch(each.modules.c_str(), name.c_str(), 0) == 0; });
  return line == placements.end() ? nullptr : &*line;
}

const ModulePlacement* placement_of_weight(const Placements& placements, std::string_view parameter) {
  const ModulePlacement* const line = placement_of(placements, parameter.substr(0, parameter.rfind('.')));
  return line && line->splits_weights() ? line : nullptr;
}

std::string_view name_of(Placement placement) {
  switch (placement) {
    case Placement::Column:
      return "column";
    case Placement::Row:
      return "row";
    case Placement::Vocabulary:
      return "vocabulary";
    case Placement::Region:
      return "region";
    case Placement::Encoder:
      return "encoder";
  }
  throw std::logic_error("name_of: no such placement");
}

}  // namespace trainyard::nn
