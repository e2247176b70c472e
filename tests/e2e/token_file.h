#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <vector>

// Safetensors written byte by byte, so that they can be wrong.
namespace trainyard::test {

/// The header's length, the header, the data.
std::string safetensors(const std::string& header, const std::string& data);

/// One int32 tensor of ids.
std::string token_file(const std::string& name, const std::vector<int64_t>& shape, const std::vector<int32_t>& ids);

}  // namespace trainyard::test
