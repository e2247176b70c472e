#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "comm/cuda/nccl_communicator.h"
#include "comm/nccl.h"
#include "comm/store_rounds.h"
#include "tensor/cuda/check.h"
#include "tensor/device_memory.h"

namespace trainyard::comm {
namespace {

constexpr int kFirstWithUserBuffers = 21903;

/// What a rank says of itself first. Whoever cannot take part says why, so that nobody waits for it in vain.
struct NcclHello {
  std::string host;
  std::string problem;
  std::string gpu;  ///< its uuid; "" of a rank alone on its node, which may share one (docs/gpu.md)
  int version = 0;
  ncclUniqueId id{};  ///< rank 0's counts
};

void require_user_buffers(int version) {
  if (version < kFirstWithUserBuffers)
    throw InputError(fmt::format("comm.user_buffers is true, but NCCL {} registers no buffers; use {} or newer",
                                 nccl_version_text(version), nccl_version_text(kFirstWithUserBuffers)));
}

NcclHello hello_of(const Settings& settings) {
  NcclHello mine{.host = settings.host};
  try {
    require_device(settings.device);
    cuda::use(settings.device.index);
    if (settings.local_world > 1) mine.gpu = properties_of(settings.device).uuid;
    mine.version = nccl().version();
    if (settings.user_buffers) require_user_buffers(mine.version);
    if (settings.rank != 0) return mine;
    if (const ncclResult_t result = nccl().get_unique_id(&mine.id); result != ncclSuccess)
      throw InputError("NCCL: " + describe(result));
  } catch (const InputError& error) {
    mine.problem = error.what();
    std::ranges::replace(mine.problem, '\n', ' ');  // a line of the text
  }
  return mine;
}

std::string text_of(const NcclHello& mine) {
  return fmt::format("{}\n{}\n{}\n{}\n", mine.host, mine.problem, mine.gpu, mine.version) +
         std::string(mine.id.internal, sizeof mine.id);
}

NcclHello parse_hello(std::string text) {
  const auto next_line = [&text] {
    std::string line = text.substr(0, text.find('\n'));
    text.erase(0, line.size() + 1);
    return line;
  };
  NcclHello peer{.host = next_line(), .problem = next_line(), .gpu = next_line(), .version = std::stoi(next_line())};
  if (text.size() != sizeof peer.id)
    throw PeerError("a rank introduces itself to NCCL in other words: another version of trainyard?");
  std::memcpy(peer.id.internal, text.data(), sizeof peer.id);
  return peer;
}

/// What keeps the ranks from connecting, the same on every rank; "" where nothing does.
std::string disagreement(const std::vector<NcclHello>& ranks, const Roster& roster, int local_world) {
  const auto name = [&](size_t rank) { return roster.names(std::array{static_cast<int>(rank)}); };
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    if (!ranks[rank].problem.empty()) return fmt::format("{}: {}", name(rank), ranks[rank].problem);
  for (size_t rank = 1; rank < ranks.size(); ++rank)
    if (ranks[rank].version != ranks[0].version)
      return fmt::format(
          "the ranks have different versions of NCCL: {} has {}, {} has {}; all need the same "
          "libnccl.so.2",
          name(0), nccl_version_text(ranks[0].version), name(rank), nccl_version_text(ranks[rank].version));
  std::map<std::string, std::vector<int>> on_gpu;
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    if (!ranks[rank].gpu.empty()) on_gpu[ranks[rank].gpu].push_back(static_cast<int>(rank));
  for (const auto& [gpu, sharing] : on_gpu)
    if (sharing.size() > 1) return fmt::format("{}: {}", roster.names(sharing), too_few_devices(local_world, 1));
  return "";
}

}  // namespace

std::unique_ptr<Communicator> connect_nccl(const Settings& settings, std::unique_ptr<Communicator> host,
                                           std::shared_ptr<Seen> seen) {
  const std::string prefix = settings.prefix + "/nccl";
  Roster roster = roster_of_threads(settings.rank, settings.world);
  std::vector<NcclHello> ranks;
  for (std::string& text :
       StoreRounds(*settings.store, roster, prefix, settings.timeout).round("hello", text_of(hello_of(settings))))
    ranks.push_back(parse_hello(std::move(text)));
  for (const NcclHello& each : ranks) roster.hosts.push_back(each.host);
  if (const std::string why = disagreement(ranks, roster, settings.local_world); !why.empty())
    throw VerdictError(why, settings.rank == 0);

  const auto watch = std::make_shared<NcclWatch>(LostRanks(*settings.store, roster, prefix), settings.device.index,
                                                 settings.timeout, std::move(seen));
  const auto group = std::make_shared<NcclGroup>(roster, "", prefix);
  watch->add(group);
  const auto flight = watch->begin(group, "connecting", {}, 0);
  watch->settle(*flight, *group, group->join(ranks.front().id));
  watch->ended(*flight);
  NcclMemory* const user_buffers = settings.user_buffers ? &nccl_memory_of(settings.device) : nullptr;
  memory_of(settings.device).gather_in(user_buffers);
  return make_nccl_communicator(watch, group, std::move(host), {settings.device, user_buffers});
}

}  // namespace trainyard::comm
