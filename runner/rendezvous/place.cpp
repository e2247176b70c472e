#include "rendezvous/place.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

extern char** environ;  // NOLINT: POSIX

namespace trainyard::rendezvous {
namespace {

constexpr int kDefaultRendezvousPort = 29400;  // torchrun's, where PET_RDZV_ENDPOINT names only a host

struct Setting {
  std::string name, value;
  [[nodiscard]] std::string text() const { return fmt::format("{}={}", name, value); }
};

/// The variables, and the checks that all of them need.
class Variables {
 public:
  explicit Variables(const Environment& environment) : environment_(environment) {}

  /// The first of `names` that is set; an empty value counts as not set, as in torchrun.
  template <class... Names>
  [[nodiscard]] std::optional<Setting> first(const Names&... names) const {
    for (const std::string_view name : {std::string_view(names)...}) {
      const auto found = environment_.find(name);
      if (found != environment_.end() && !found->second.empty()) return Setting{found->first, found->second};
    }
    return std::nullopt;
  }

  /// It does what first() does, and all that are set must agree.
  template <class... Names>
  [[nodiscard]] std::optional<Setting> agreed(const Names&... names) const {
    const auto chosen = first(names...);
    for (const std::string_view name : {std::string_view(names)...}) {
      const auto other = first(name);
      if (other && other->value != chosen->value) {
        throw InputError(
            fmt::format("{} contradicts {}; set one of them, or both to one value", chosen->text(), other->text()));
      }
    }
    return chosen;
  }

 private:
  const Environment& environment_;
};

int64_t number(const Setting& setting, int64_t least, int64_t most) {
  const auto value = parse_int(setting.value);
  if (!value || *value < least || *value > most) {
    const std::string upper = most == std::numeric_limits<int>::max() ? "" : fmt::format(" and at most {}", most);
    throw InputError(fmt::format("{} is '{}'; it must be a whole number of at least {}{}", setting.name, setting.value,
                                 least, upper));
  }
  return *value;
}

int count(const Setting& setting, int least = 0) {
  return static_cast<int>(number(setting, least, std::numeric_limits<int>::max()));
}

uint16_t port(const Setting& setting) {
  return static_cast<uint16_t>(number(setting, 1, 65535));
}

/// "[::1]" is ::1: brackets only keep an address and a port apart.
std::string without_brackets(const std::string& host) {
  return host.starts_with('[') && host.ends_with(']') ? host.substr(1, host.size() - 2) : host;
}

Endpoint endpoint_of(const Setting& setting) {
  const std::string& text = setting.value;
  const size_t colon = text.rfind(':');
  const bool is_bare_ipv6 = text.find(':') != colon && text.front() != '[';
  const bool has_port = colon != std::string::npos && !is_bare_ipv6 && text.find(']', colon) == std::string::npos;
  const std::string host = without_brackets(has_port ? text.substr(0, colon) : text);
  if (host.empty()) throw InputError(fmt::format("{} names no host; it must be host or host:port", setting.text()));
  return {host, has_port ? port({setting.name, text.substr(colon + 1)}) : uint16_t{kDefaultRendezvousPort}};
}

std::optional<Endpoint> master_of(const std::optional<Setting>& address, const std::optional<Setting>& master_port,
                                  const std::optional<Setting>& rendezvous) {
  if (!address && rendezvous) return endpoint_of(*rendezvous);
  if (!address) return std::nullopt;
  if (!master_port) throw InputError(fmt::format("{} is set, so MASTER_PORT must be set too", address->text()));
  return Endpoint{without_brackets(address->value), port(*master_port)};
}

void require_below(int index, const Setting& index_setting, int size, const std::string& size_text) {
  if (index >= size) {
    throw InputError(fmt::format("{} contradicts {}: it must be less", index_setting.text(), size_text));
  }
}

Setting required(const std::optional<Setting>& setting, std::string_view names, std::string_view because) {
  if (!setting) throw InputError(fmt::format("{} is not set, though {} is", names, because));
  return *setting;
}

Place rank_place(const Variables& variables, const Setting& local_rank) {
  const Setting rank = required(variables.agreed("RANK", "OMPI_COMM_WORLD_RANK"), "RANK", local_rank.text());
  const Setting world =
      required(variables.agreed("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE"), "WORLD_SIZE", local_rank.text());
  const auto local_world = variables.agreed("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE");
  Place place;
  place.kind = Place::Kind::Rank;
  place.rank = count(rank);
  place.world = count(world, 1);
  place.local_rank = count(local_rank);
  place.local_world = local_world ? count(*local_world, 1) : place.local_rank + 1;
  place.under_mpirun = variables.first("OMPI_COMM_WORLD_RANK").has_value();
  require_below(place.rank, rank, place.world, world.text());
  require_below(place.local_rank, local_rank, place.local_world, local_world ? local_world->text() : "itself");
  if (place.local_world > place.world) {
    throw InputError(fmt::format("{} contradicts {}: a node has no more ranks than the world",
                                 local_world ? local_world->text() : local_rank.text(), world.text()));
  }
  // torchrun in a pod sets MASTER_ADDR anew for its ranks and leaves the operator's PET_ variables, so these don't
  // count.
  place.master = master_of(variables.first("MASTER_ADDR"), variables.first("MASTER_PORT"), std::nullopt);
  if (!place.master && place.world > 1 && !place.under_mpirun) {
    throw InputError(fmt::format("MASTER_ADDR is not set, though {} says that there are others to meet", world.text()));
  }
  return place;
}

void read_node_count(NodePlace& node, const Setting& setting) {
  const size_t colon = setting.value.find(':');
  node.min_nodes = count({setting.name, setting.value.substr(0, colon)}, 1);
  node.max_nodes =
      colon == std::string::npos ? node.min_nodes : count({setting.name, setting.value.substr(colon + 1)}, 1);
  if (node.min_nodes > node.max_nodes)
    throw InputError(fmt::format("{}: the minimum exceeds the maximum", setting.text()));
}

/// The operator's WORLD_SIZE is nodes x ranks a node, where the latter is a number; else it counts nodes.
void check_world(NodePlace& node, const std::optional<Setting>& nodes, const Setting& world,
                 const std::optional<Setting>& processes) {
  const int a_node = static_cast<int>(processes ? parse_int(processes->value).value_or(1) : 1);
  const int total = count(world, 1);
  const std::string ranks = processes ? processes->text() : "one rank a node";
  if (!nodes) {
    if (total % a_node != 0) throw InputError(fmt::format("{} contradicts {}: it is no multiple", world.text(), ranks));
    node.min_nodes = node.max_nodes = total / a_node;
  } else if (node.min_nodes == node.max_nodes && total != int64_t{node.max_nodes} * a_node) {
    throw InputError(fmt::format("{} contradicts {} with {}, which make {}", world.text(), nodes->text(), ranks,
                                 int64_t{node.max_nodes} * a_node));
  } else {
    node.nodes_now = total / a_node;
  }
}

void check_processes(const Setting& processes) {
  constexpr std::array<std::string_view, 3> kWords{"auto", "cpu", "gpu"};
  if (std::find(kWords.begin(), kWords.end(), processes.value) != kWords.end()) return;
  const auto value = parse_int(processes.value);
  if (value && *value >= 1 && *value <= 4096) return;
  throw InputError(fmt::format("{} is '{}'; it must be auto, cpu, gpu, or a number from 1 to 4096", processes.name,
                               processes.value));
}

Place node_place(const Variables& variables) {
  Place place;
  place.kind = Place::Kind::Node;
  NodePlace& node = place.node;
  const auto processes = variables.first("PET_NPROC_PER_NODE");
  if (processes) check_processes(*processes), node.processes = processes->value;
  const auto nodes = variables.first("PET_NNODES");
  if (nodes) read_node_count(node, *nodes);
  const auto world = variables.first("WORLD_SIZE");
  if (world) check_world(node, nodes, *world, processes);
  if (const auto rank = variables.agreed("PET_NODE_RANK", "RANK")) {
    node.node_rank = count(*rank);
    require_below(*node.node_rank, *rank, node.max_nodes,
                  (nodes   ? *nodes
                   : world ? *world
                           : Setting{"PET_NNODES", "1"})
                      .text());
  }
  if (node.max_nodes == 1) node.node_rank = 0;
  place.master = master_of(variables.agreed("MASTER_ADDR", "PET_MASTER_ADDR"),
                           variables.agreed("MASTER_PORT", "PET_MASTER_PORT"), variables.first("PET_RDZV_ENDPOINT"));
  if (node.max_nodes == 1) return place;
  const std::string several = (nodes ? *nodes : *world).text();
  if (!place.master)
    throw InputError(fmt::format("MASTER_ADDR is not set, though {} says that there are others to meet", several));
  if (!node.node_rank && node.min_nodes == node.max_nodes)
    static_cast<void>(required(std::nullopt, "PET_NODE_RANK (or RANK)", several));
  return place;
}

std::string in_capitals(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

bool is_level_info(const Variables& variables) {
  const auto level = variables.first("NCCL_DEBUG");
  return level && (in_capitals(level->value) == "INFO" || in_capitals(level->value) == "TRACE");
}

/// NCCL's rule: at the level INFO or TRACE the subsystems that are listed, or after "^" all but those; by default
/// three.
bool is_logged(const Variables& variables, std::string_view subsystem) {
  const auto listed = variables.first("NCCL_DEBUG_SUBSYS");
  if (!is_level_info(variables)) return false;
  std::string list = listed ? in_capitals(listed->value) : "INIT,BOOTSTRAP,ENV";
  const bool is_of_others = list.starts_with('^');
  if (is_of_others) list.erase(0, 1);
  const bool is_named = std::ranges::any_of(
      split(list, ','), [&](const std::string& each) { return each == subsystem || each == "ALL"; });
  return is_named != is_of_others;
}

Place place_by_kind(const Variables& variables) {
  if (const auto local = variables.agreed("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"))
    return rank_place(variables, *local);
  if (variables.first("PET_NNODES", "PET_NODE_RANK", "PET_NPROC_PER_NODE", "WORLD_SIZE", "RANK"))
    return node_place(variables);
  return {};
}

}  // namespace

Environment process_environment() {
  Environment environment;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view text(*entry);
    const size_t equals = text.find('=');
    if (equals != std::string_view::npos) environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

std::string Endpoint::text() const {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port) : fmt::format("[{}]:{}", host, port);
}

Place place_of(const Environment& environment) {
  const Variables variables(environment);
  Place place = place_by_kind(variables);
  if (const auto generation = variables.first("TRAINYARD_GENERATION")) {
    place.generation = number(*generation, 0, std::numeric_limits<int64_t>::max());
  }
  if (const auto restart = variables.first("TORCHELASTIC_RESTART_COUNT"))
    place.restart = number(*restart, 0, std::numeric_limits<int64_t>::max());
  place.logs_meeting = is_logged(variables, "BOOTSTRAP");
  place.logs_communicator = is_logged(variables, "INIT");
  place.logs_interface = place.logs_communicator || is_logged(variables, "NET");
  place.logs_collectives = is_logged(variables, "COLL");
  place.summarizes_collectives = is_level_info(variables) && !variables.first("NCCL_DEBUG_SUBSYS");
  return place;
}

std::string job_token(const Environment& environment) {
  const Variables variables(environment);
  const auto token = variables.first("TRAINYARD_JOB_TOKEN");
  const auto file = variables.first("TRAINYARD_JOB_TOKEN_FILE");
  if (!file) return token ? token->value : "";
  const std::string content(trim(read_file(file->value, 4096)));
  if (token && token->value != content) {
    throw InputError(fmt::format("TRAINYARD_JOB_TOKEN differs from the content of {}; set one of them", file->text()));
  }
  return content;
}

}  // namespace trainyard::rendezvous
