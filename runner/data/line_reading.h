#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/columns/record_columns.h"

namespace trainyard::data {

/// Whether all ids of a corpus are targets.
enum class Counting { AllIds, SomeIds };

/// How each line of JSON, or each row of a table, becomes the ids of a document. Any number of threads.
class LineReading {
 public:
  virtual ~LineReading() = default;

  /// What messages call such lines, in the plural.
  [[nodiscard]] virtual std::string name() const = 0;
  /// Those that are read of a table.
  [[nodiscard]] virtual RecordColumns columns() const = 0;
  /// All that the ids follow from beside the lines.
  [[nodiscard]] virtual std::string description() const = 0;
  [[nodiscard]] virtual Counting counting() const = 0;
  /// `line` is JSON; of a row an object with its columns. Ids that are no target are complements (TokenArray). Throws
  /// InputError, beginning with `where`.
  [[nodiscard]] virtual std::vector<int32_t> ids(std::string_view line, const std::string& where) const = 0;
};

}  // namespace trainyard::data
