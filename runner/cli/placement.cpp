#include "cli/placement.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "cli/parse.h"
#include "cli/session.h"
#include "dialects/launcher.h"
#include "dialects/load.h"
#include "launch/resources.h"
#include "rendezvous/place.h"

namespace trainyard::cli {
namespace {

AskedRanks ranks_of_node(const rendezvous::NodePlace& node, const rendezvous::Environment& environment) {
  const int ranks = launch::ranks_of(node.processes, launch::resources_here(environment));
  AskedRanks asked{.world = node.min_nodes * ranks, .nodes = node.min_nodes, .ranks_per_node = ranks};
  if (node.min_nodes == 1) asked.nodes = asked.ranks_per_node = 0;  // more than one node has may be asked for
  return asked;
}

}  // namespace

void add_ranks(CLI::App& app, AskedRanks& asked) {
  constexpr std::pair kRanks{1, 1 << 20};
  add_count(app, "--world", asked.world, kRanks,
            "ranks; default: nodes x ranks a node, else those of a file of `accelerate config`, else 1");
  add_count(app, "--nodes", asked.nodes, kRanks, "nodes of --ranks-per-node ranks");
  add_count(app, "--ranks-per-node", asked.ranks_per_node, kRanks, "default: 8, or all where there are fewer");
}

std::string take_ranks_of_file(AskedRanks& asked, const Arguments& settings) {
  if (asked.world > 0 || asked.nodes > 0) return "";
  for (const std::string& file : dialects::accelerate_files(settings)) {
    const auto world = dialects::world_of(file);
    if (!world) continue;
    asked.world = world->nodes * world->ranks_per_node;
    if (asked.ranks_per_node == 0) asked.ranks_per_node = world->ranks_per_node;
    return file;
  }
  return "";
}

train::Placement placement_of(const AskedRanks& asked) {
  constexpr int kUsualNode = 8;
  if (asked.world > 0 && asked.nodes > 0 && asked.world % asked.nodes != 0)
    throw InputError(fmt::format("--world is {}, which {} --nodes do not divide", asked.world, asked.nodes));
  int ranks_per_node = asked.ranks_per_node;
  if (ranks_per_node == 0 && asked.nodes > 0 && asked.world > 0) ranks_per_node = asked.world / asked.nodes;
  if (ranks_per_node == 0) ranks_per_node = kUsualNode;
  const int world = asked.world > 0 ? asked.world : (asked.nodes > 0 ? asked.nodes * ranks_per_node : 1);
  if (asked.nodes > 0 && asked.nodes * ranks_per_node != world)
    throw InputError(fmt::format("--nodes {} x --ranks-per-node {} is {}, but --world is {}", asked.nodes,
                                 ranks_per_node, asked.nodes * ranks_per_node, world));
  return {world, std::min(ranks_per_node, world)};
}

AskedRanks ranks_to_start(const Launched* launched) {
  if (launched) return ranks_of_node(launched->options.node, launched->environment);
  const rendezvous::Environment environment = rendezvous::process_environment();
  const rendezvous::Place place = rendezvous::place_of(environment);
  if (place.kind == rendezvous::Place::Kind::Node) return ranks_of_node(place.node, environment);
  return {.world = place.world, .ranks_per_node = place.world > place.local_world ? place.local_world : 0};
}

}  // namespace trainyard::cli
