#pragma once

#include <string>
#include <string_view>

namespace trainyard {

// JSON that is read to be changed and written again: whole numbers beyond 64 bits, which the JSON library reads as
// floating-point ones, go through as they are written.

/// `json` with each of them as a text that says so: what is then parsed.
std::string with_large_numbers_held(std::string_view json);

/// `json`, as it was dumped from that, with the numbers again.
std::string with_large_numbers_released(std::string_view json);

}  // namespace trainyard
