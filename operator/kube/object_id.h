#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"

namespace trainyard::kube {

/// Which object in which state. Versions of one server's objects are numbers that grow with each write; 0: none.
struct ObjectId {
  std::string key;  ///< "ns/name"
  std::string uid;
  uint64_t version = 0;
};

[[nodiscard]] std::string key_of(std::string_view ns, std::string_view name);
[[nodiscard]] uint64_t parse_version(std::string_view text);
[[nodiscard]] ObjectId id_of(const Json& object);

}  // namespace trainyard::kube
