#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace trainyard::data {

/// Throws InputError, naming the first that differs, where `state` does not have every member of `ours` with the same
/// value: the place it tells of is one in other data, or in another order. `data` is what messages call the data.
void require_same(const nlohmann::json& state, const nlohmann::json& ours, const std::string& data);

/// The non-negative whole number `name` of `state`. Throws InputError where it is none.
int64_t count_in(const nlohmann::json& state, const char* name);

}  // namespace trainyard::data
