#include "api/pod_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "api/container_rules.h"
#include "api/field.h"
#include "api/job.h"
#include "api/label_rules.h"
#include "api/pod_field_rules.h"
#include "api/ports.h"

// The rules and their wording are those of Kubernetes' pkg/apis/core/validation; what the schema of the job checks as
// well is left to it, but for what an older one lets through.
namespace trainyard::api {
namespace {

using Violations = std::vector<Violation>;

constexpr int64_t kMostPort = 65535;

/// 0 where nothing is there, as the API server has it.
int64_t number_at(const Json& object, const char* pointer) {
  const Json* const found = find(object, pointer);
  return found ? whole_number_of(*found).value_or(0) : 0;
}

class PodRules {
 public:
  PodRules(const Json& pod_template, std::string path)
      : template_(pod_template), path_(std::move(path)), has_host_network_(flag_at(template_, "/spec/hostNetwork")) {}

  Violations violations() && {
    std::set<std::string> names, host_ports;
    const Json& containers = list_or_empty(template_, "/spec/containers");
    for (size_t i = 0; i < containers.size(); ++i) {
      check_container(containers[i], at("containers", i), names);
      check_ports(ports_of(containers[i]), at("containers", i) + ".ports", host_ports);
      if (has_host_network_) check_host_network(ports_of(containers[i]), at("containers", i) + ".ports");
    }
    const Json& inits = list_or_empty(template_, "/spec/initContainers");
    for (size_t i = 0; i < inits.size(); ++i) {
      std::set<std::string> own_host_ports;  // these run one after the other
      check_container(inits[i], at("initContainers", i), names);
      if (text_at(inits[i], "/restartPolicy") != "Always") check_init_container(inits[i], at("initContainers", i));
      check_ports(ports_of(inits[i]), at("initContainers", i) + ".ports", own_host_ports);
    }
    check_service(containers);
    if (const Json* const metadata = object_at(template_, "/metadata"))
      check_labels(*metadata, path_ + ".metadata", refuses());
    if (const Json* const spec = object_at(template_, "/spec")) {
      check_volumes(*spec, path_ + ".spec", refuses());
      check_pod_fields(*spec, path_ + ".spec", refuses());
    }
    return std::move(violations_);
  }

 private:
  [[nodiscard]] std::string at(const char* list, size_t i) const {
    return fmt::format("{}.spec.{}[{}]", path_, list, i);
  }

  void refuse(std::string path, std::string message) { violations_.push_back({std::move(path), std::move(message)}); }
  [[nodiscard]] Refuse refuses() {
    return [this](const std::string& path, const std::string& message) { refuse(path, message); };
  }

  /// These are the ports of the container, with the one that the defaults append.
  static Json ports_of(const Json& container) {
    Json ports = list_or_empty(container, "/ports");
    if (text_at(container, "/name") == kContainerName) add_meeting_port(ports);
    return ports;
  }

  /// All containers of a pod have different names; this includes its init containers.
  void check_container(const Json& container, const std::string& path, std::set<std::string>& names) {
    const std::string name = text_at(container, "/name");
    if (const std::string defect = name.empty() ? "" : label_defect(name); !defect.empty())
      refuse(path + ".name", invalid(name, defect));
    else if (!name.empty() && !names.insert(name).second)
      refuse(path + ".name", duplicate(name));
    const Json& variables = list_or_empty(container, "/env");
    for (size_t i = 0; i < variables.size(); ++i)
      check_source(variables[i], fmt::format("{}.env[{}].valueFrom", path, i));
    check_container_fields(container, path, refuses());
  }

  /// An init container that ends has nobody who would ask it.
  void check_init_container(const Json& container, const std::string& path) {
    for (const char* const field : {"lifecycle", "livenessProbe", "readinessProbe", "startupProbe"})
      if (object_at(container, std::string("/") + field))
        refuse(fmt::format("{}.{}", path, field),
               "Forbidden: may not be set for init containers without restartPolicy=Always");
  }

  /// Sources of a newer Kubernetes, which are not known here, count as well.
  void check_source(const Json& variable, const std::string& path) {
    const Json* const source = object_at(variable, "/valueFrom");
    if (!source) return;
    const auto count = std::ranges::count_if(*source, [](const Json& one) { return !one.is_null(); });
    if (count == 0)
      refuse(path, invalid("", "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or "
                               "`secretKeyRef`"));
    else if (!text_at(variable, "/value").empty())
      refuse(path, invalid("", "may not be specified when `value` is not empty"));
    else if (count > 1)
      refuse(path, invalid("", "may not have more than one field specified at a time"));
  }

  void check_ports(const Json& ports, const std::string& path, std::set<std::string>& taken) {
    std::set<std::string> names;
    for (size_t i = 0; i < ports.size(); ++i) {
      const std::string place = fmt::format("{}[{}]", path, i);
      check_name(text_at(ports[i], "/name"), place + ".name", names);
      check_number(number_at(ports[i], "/containerPort"), place + ".containerPort");
      check_protocol(protocol_of(ports[i]), place + ".protocol");
      check_host_port(ports[i], place + ".hostPort", taken);
    }
  }

  void check_name(const std::string& name, const std::string& path, std::set<std::string>& names) {
    if (name.empty()) return;
    const size_t before = violations_.size();
    const auto require = [&](bool holds, const char* rule) {
      if (!holds) refuse(path, invalid(name, rule));
    };
    const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
    const auto is_known = [&](char c) { return is_letter(c) || c == '-' || (c >= '0' && c <= '9'); };
    require(name.size() <= 15, "must be no more than 15 characters");
    require(std::ranges::all_of(name, is_known),
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
    require(std::ranges::any_of(name, is_letter), "must contain at least one letter (a-z)");
    require(name.find("--") == std::string::npos, "must not contain consecutive hyphens");
    require(name.front() != '-' && name.back() != '-', "must not begin or end with a hyphen");
    if (violations_.size() == before && !names.insert(name).second)
      refuse(path, duplicate(name));
  }

  void check_number(int64_t number, const std::string& path) {
    if (number == 0) return refuse(path, "Required value");
    if (number < 0 || number > kMostPort) refuse(path, invalid(number, between(1, kMostPort)));
  }

  void check_protocol(const std::string& protocol, const std::string& path) {
    check_word(protocol, {"SCTP", "TCP", "UDP"}, path, refuses());
  }

  void check_host_port(const Json& port, const std::string& path, std::set<std::string>& taken) {
    const int64_t given = number_at(port, "/hostPort");
    const int64_t number = given == 0 && has_host_network_ ? number_at(port, "/containerPort") : given;
    if (number == 0) return;
    if (given != 0) check_number(given, path);
    const std::string whole = fmt::format("{}/{}/{}", protocol_of(port), text_at(port, "/hostIP"), number);
    if (taken.insert(whole).second) return;
    const char* const hint = number != kDefaultPort ? ""
                                                    : "; the ranks meet at 23456 where container pytorch has no port "
                                                      "called pytorchjob-port: give it one with another number";
    refuse(path, duplicate(whole) + hint);
  }

  /// This is no rule for init containers.
  void check_host_network(const Json& ports, const std::string& path) {
    for (size_t i = 0; i < ports.size(); ++i) {
      const int64_t given = number_at(ports[i], "/hostPort");
      if (given != 0 && given != number_at(ports[i], "/containerPort"))
        refuse(fmt::format("{}[{}].hostPort", path, i),
               invalid(given, "must match `containerPort` when `hostNetwork` is true"));
    }
  }

  /// The service has the ports of container pytorch, each number with each protocol once.
  void check_service(const Json& containers) {
    const auto is_it = [](const Json& one) { return text_at(one, "/name") == kContainerName; };
    const auto found = std::ranges::find_if(containers, is_it);
    if (found == containers.end()) return;
    const Json& ports = list_or_empty(*found, "/ports");
    std::set<std::pair<int64_t, std::string>> seen;
    for (size_t i = 0; i < ports.size(); ++i) {
      const int64_t number = number_at(ports[i], "/containerPort");
      const std::string protocol = protocol_of(ports[i]);
      if (!seen.insert({number, protocol}).second)
        refuse(fmt::format("{}.ports[{}]", at("containers", static_cast<size_t>(found - containers.begin())), i),
               fmt::format("Duplicate value: {}", dump(Json{{"containerPort", number}, {"protocol", protocol}})));
    }
  }

  const Json& template_;
  std::string path_;
  bool has_host_network_;
  Violations violations_;
};

}  // namespace

std::vector<Violation> violations_of_pod(const Json& pod_template, const std::string& path) {
  return PodRules(pod_template, path).violations();
}

}  // namespace trainyard::api
