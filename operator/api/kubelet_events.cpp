#include "api/kubelet_events.h"

#include <algorithm>
#include <string_view>

namespace trainyard::api {
namespace {

/// The node authorizer, of an object that is there: "… is forbidden: … no relationship found between node 'n' and this
/// object".
constexpr std::string_view kNotLinkedYet = "no relationship found between node";

std::string time_of(const Json& event) {
  return std::max(text_at(event, "/lastTimestamp"), text_at(event, "/eventTime"));  // both in RFC 3339, UTC
}

}  // namespace

std::string last_warning(const Json& events) {
  const Json* const items = list_at(events, "/items");
  if (!items) return "";
  const Json* last = nullptr;
  for (const Json& event : *items) {
    if (text_at(event, "/message").find(kNotLinkedYet) != std::string::npos) continue;
    if (!last || time_of(event) >= time_of(*last)) last = &event;
  }
  constexpr size_t kMost = 1024;
  return last && text_at(*last, "/type") == "Warning" ? text_at(*last, "/message").substr(0, kMost) : "";
}

}  // namespace trainyard::api
