#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/json.h"
#include "base/time.h"

namespace trainyard::api {

/// The owner with `controller: true`.
struct Controller {
  std::string kind, name, uid;
};

/// What decisions need of an object's metadata.
struct Meta {
  std::string name, ns, uid;
  std::string resource_version;
  int64_t generation = 0;
  std::map<std::string, std::string> labels, annotations;
  std::optional<Controller> controller;
  TimePoint created;
  std::optional<TimePoint> deleted;  ///< deletionTimestamp: it is going, and may take its grace time
};

/// Tolerant: what is missing stays empty.
[[nodiscard]] Meta parse_meta(const Json& object);

}  // namespace trainyard::api
