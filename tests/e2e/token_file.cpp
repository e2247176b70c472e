#include "token_file.h"

#include <cstring>

namespace trainyard::test {

std::string safetensors(const std::string& header, const std::string& data) {
  const uint64_t length = header.size();
  std::string file(sizeof length, '\0');
  std::memcpy(file.data(), &length, sizeof length);  // little-endian, as this machine is
  return file + header + data;
}

std::string token_file(const std::string& name, const std::vector<int64_t>& shape, const std::vector<int32_t>& ids) {
  std::string data(ids.size() * sizeof(int32_t), '\0');
  std::memcpy(data.data(), ids.data(), data.size());
  const nlohmann::json header{{name, {{"dtype", "I32"}, {"shape", shape}, {"data_offsets", {0, data.size()}}}}};
  return safetensors(header.dump(), data);
}

}  // namespace trainyard::test
