#pragma once

#include <string>
#include <vector>

namespace trainyard::data {

/// Columns that are read together, each of lists, structs, texts, numbers and truths within one another.
struct RecordColumns {
  std::string needed;                      ///< has to be there
  std::vector<std::string> optional = {};  ///< are read where they are there
};

}  // namespace trainyard::data
