#include "api/ports.h"

#include "api/field.h"
#include "api/job.h"

namespace trainyard::api {
namespace {

bool is_default_port(const Json& port) {
  const Json* const number = find(port, "/containerPort");
  return number && whole_number_of(*number) == kDefaultPort && protocol_of(port) == "TCP";
}

}  // namespace

std::string protocol_of(const Json& port) {
  const std::string given = text_at(port, "/protocol");
  return given.empty() ? "TCP" : given;
}

std::optional<size_t> meeting_port(const Json& ports) {
  if (!ports.is_array()) return std::nullopt;
  std::optional<size_t> by_number;
  for (size_t i = 0; i < ports.size(); ++i) {
    if (text_at(ports[i], "/name") == kPortName) return i;
    if (!by_number && is_default_port(ports[i])) by_number = i;
  }
  return by_number;
}

void add_meeting_port(Json& ports) {
  if (ports.is_null()) ports = Json::array();
  // A second entry for a number that is there would be refused in the service, and in a pod of the host's network.
  if (!meeting_port(ports)) ports.push_back({{"name", kPortName}, {"containerPort", kDefaultPort}});
}

}  // namespace trainyard::api
