#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace trainyard {

/// The known word nearest to `word` by edit distance, for "did you mean …"; none where nothing is near (more than a
/// third of the longer word would have to change).
[[nodiscard]] std::optional<std::string> nearest(std::string_view word, std::span<const std::string> known);

}  // namespace trainyard
