#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard {

/// Levenshtein's: how many letters have to be put in, taken out or replaced.
[[nodiscard]] size_t edit_distance(std::string_view a, std::string_view b);

/// The known word nearest to `word` by edit distance, for "did you mean …"; none where nothing is near (more than a
/// third of the longer word would have to change).
[[nodiscard]] std::optional<std::string> nearest(std::string_view word, std::span<const std::string> known);

/// The whole of `text` as a decimal number; none where it is something else.
[[nodiscard]] std::optional<int64_t> parse_int(std::string_view text);

/// 16 hex digits that another text does not have: FNV-1a, the same in every build. Nothing for secrets.
[[nodiscard]] std::string digest_of(std::string_view text);

/// The parts of `text` between the separators: there is at least one, and any may be empty. They borrow from `text`.
[[nodiscard]] std::vector<std::string_view> parts_of(std::string_view text, char separator);

/// Every `from`, which is not empty, becomes `to`.
void replace_all(std::string& text, std::string_view from, std::string_view to);

}  // namespace trainyard
