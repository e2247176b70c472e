#pragma once

#include <string_view>

namespace trainyard {

/// Whether JSON's brackets are open at most 500 deep at once, without those within strings: what is deeper is nothing
/// that anybody means, and printing it takes a frame of the stack a bracket.
bool is_shallow_json(std::string_view text);

}  // namespace trainyard
