#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace trainyard {

/// RFC 4648 with padding; line ends within are skipped. None where it is something else.
[[nodiscard]] std::optional<std::string> base64_decoded(std::string_view text);
[[nodiscard]] std::string base64_encoded(std::string_view bytes);

}  // namespace trainyard
