#include <nccl.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "mailbox.h"
#include "nccl_operation.h"

namespace {

using namespace host_nccl;

struct Registration {
  const std::byte* begin;
  size_t bytes;
};

struct Group {
  explicit Group(int size) : ranks(static_cast<size_t>(size)), members(ranks) {}
  const size_t ranks;
  std::vector<ncclComm*> members;                                ///< null: has not come, or is gone
  size_t arrived = 0;                                            ///< so many have come
  std::map<uint64_t, std::vector<std::optional<Part>>> waiting;  ///< operations that not all ranks have come to
  std::optional<Mailbox> mail{};                                 ///< where the other ranks are processes
  std::jthread reader{};                                         ///< brings what they do
};

std::mutex g_mutex;  // guards all groups and communicators
std::map<std::string, std::shared_ptr<Group>> g_groups;
std::set<ncclComm*> g_comms;
std::map<const std::byte*, size_t> g_memory;  ///< ncclMemAlloc's
std::vector<std::string> g_misuses;
std::string g_last_error;
int g_last_id = 0;
thread_local int t_version = 22809, t_depth = 0;
thread_local std::map<std::string, ncclResult_t> t_failures;
thread_local Part t_exchange{.kind = Kind::Exchange};
thread_local ncclComm *t_exchange_of = nullptr, *t_grouped = nullptr;

}  // namespace

struct ncclComm {
  std::shared_ptr<Group> group;
  size_t rank;
  int device;
  uint64_t posted = 0;
  std::optional<uint64_t> settling;  ///< the operation that NCCL on the host is not through with: a first one, a split
  ncclResult_t error = ncclSuccess;
  bool is_finalized = false;
  std::map<void*, Registration> registered{};  ///< by handle
};

namespace {

ncclResult_t misused(const std::string& how) {
  g_misuses.push_back(how);
  return ncclInvalidUsage;
}

Place place_of(const ncclComm& comm, const std::byte* buffer) {
  for (const auto& [handle, one] : comm.registered)
    if (buffer >= one.begin && buffer < one.begin + one.bytes) return buffer - one.begin;
  return std::nullopt;
}

ncclResult_t ordered(const char* call) {
  const auto found = t_failures.find(call);
  if (found == t_failures.end()) return ncclSuccess;
  const ncclResult_t result = found->second;
  t_failures.erase(found);
  return result;
}

int current_device() {
  int device = 0;
  cudaGetDevice(&device);
  return device;
}

ncclComm* make_comm(const std::shared_ptr<Group>& group, size_t rank, int device) {
  auto* const comm = new ncclComm{.group = group, .rank = rank, .device = device};
  group->members[rank] = comm;
  ++group->arrived;
  g_comms.insert(comm);
  return comm;
}

void read_mail(const std::shared_ptr<Group>& group, size_t rank);

void split(const std::vector<Part>& parts, const Group& parent, uint64_t number) {
  std::map<int, std::vector<std::pair<int, size_t>>> colors;  // (key, rank) of each color
  for (size_t rank = 0; rank < parts.size(); ++rank) colors[parts[rank].color].emplace_back(parts[rank].key, rank);
  for (auto& [color, members] : colors) {
    std::ranges::sort(members);
    const auto group = std::make_shared<Group>(static_cast<int>(members.size()));
    for (size_t rank = 0; rank < members.size(); ++rank) {
      ncclComm_t* const wanted = parts[members[rank].second].split;
      if (!wanted) {
        ++group->arrived;  // another process's
        continue;
      }
      *wanted = make_comm(group, rank, parent.members[members[rank].second]->device);
      if (!parent.mail) continue;
      group->mail = parent.mail->part(std::to_string(number) + "." + std::to_string(color), rank, group->ranks);
      read_mail(group, rank);
    }
  }
}

void run(const std::vector<Part>& parts, const Group& group, uint64_t number) {
  if (!are_registered_alike(parts)) misused("ranks bring registered buffers to a collective that are not alike");
  if (parts[0].kind == Kind::Split)
    split(parts, group, number);
  else
    carry_out(parts);
}

/// Rank `rank` has come to an operation; the last one to come does the work of all, as nothing but its stream waits for
/// it.
void bring(Group& group, uint64_t number, size_t rank, Part part) {
  auto& waiting = group.waiting[number];
  waiting.resize(group.ranks);
  waiting[rank] = std::move(part);
  if (!std::ranges::all_of(waiting, [](const auto& each) { return each.has_value(); })) return;
  std::vector<Part> parts;
  for (auto& each : waiting) parts.push_back(std::move(*each));
  group.waiting.erase(number);
  run(parts, group, number);
  for (const Part& each : parts)
    if (each.kind != Kind::Split && !each.letter) host_cuda::end_work(each.stream);
}

ncclResult_t state_of(const ncclComm& comm) {
  if (comm.error != ncclSuccess) return comm.error;
  if (comm.group->arrived < comm.group->ranks) return ncclInProgress;
  return comm.settling && comm.group->waiting.contains(*comm.settling) ? ncclInProgress : ncclSuccess;
}

/// What tells the GPU of a rank from others': two ranks may not share one, of the same host by NCCL_HOSTID.
std::string seat_of_this_rank() {
  const char* const host = std::getenv("NCCL_HOSTID");
  return std::string(host ? host : "this host") + " " + std::to_string(host_cuda::number_of(current_device()));
}

/// The others' hellos: ranks that are not alone on their GPU have an error.
void welcome(Group& group, size_t own) {
  std::set<std::vector<std::byte>> seats;
  for (size_t rank = 0; rank < group.ranks; ++rank) seats.insert(group.mail->read("hello", rank));
  group.arrived = group.ranks;
  if (seats.size() < group.ranks && group.members[own]) group.members[own]->error = ncclInvalidUsage;
}

/// Starts to bring what the other ranks of a group do, of which `own` alone is in this process.
void read_mail(const std::shared_ptr<Group>& group, size_t own) {
  group->reader = std::jthread([group = group.get(), own](const std::stop_token& stop) {
    std::vector<uint64_t> next(group->ranks);
    for (; !stop.stop_requested(); std::this_thread::sleep_for(std::chrono::microseconds(200))) {
      const std::unique_lock lock(g_mutex, std::try_to_lock);  // who ends this thread has it
      if (!lock) continue;
      if (group->arrived < group->ranks && group->mail->has_all("hello")) welcome(*group, own);
      for (size_t rank = 0; rank < group->ranks; ++rank)
        for (; rank != own && group->mail->has(std::to_string(next[rank]), rank); ++next[rank])
          bring(*group, next[rank], rank,
                part_of(std::make_shared<const std::vector<std::byte>>(
                    group->mail->read(std::to_string(next[rank]), rank))));
    }
  });
}

/// Of a call that is not for the state: NCCL takes none of a communicator that is not through with the one before.
ncclResult_t readiness_of(const ncclComm& comm) {
  const ncclResult_t state = state_of(comm);
  if (state != ncclInProgress && !comm.is_finalized) return state;
  misused(comm.is_finalized ? "a communicator is called that is finalized" : "a communicator is called that is busy");
  return ncclInvalidArgument;
}

ncclResult_t post(ncclComm* comm, Part part) {
  const std::lock_guard lock(g_mutex);
  const bool is_in_group = t_depth > 0 && t_grouped == comm;
  if (const ncclResult_t result = is_in_group ? comm->error : readiness_of(*comm)) return result;
  if (t_depth > 0) t_grouped = comm;
  Group& group = *comm->group;
  const uint64_t number = comm->posted++;
  const bool is_split = part.kind == Kind::Split;
  if (!is_split) host_cuda::begin_work(part.stream);
  if (number == 0 || is_split) comm->settling = number;  // a first operation connects the ranks
  part.from_place = place_of(*comm, part.from), part.to_place = place_of(*comm, part.to);
  if (group.mail) group.mail->put(std::to_string(number), letter_of(part, group.ranks));
  bring(group, number, comm->rank, std::move(part));
  return ncclInProgress;  // a thread of its own goes on
}

struct What {
  Kind kind;
  ncclDataType_t type;
  cudaStream_t stream;
};
Part part_with(const What& what, const void* from, void* to, size_t count) {
  return {.kind = what.kind,
          .from = static_cast<const std::byte*>(from),
          .to = static_cast<std::byte*>(to),
          .count = count,
          .type = what.type,
          .stream = what.stream};
}

/// No more operations of this rank; those it has brought end, undone.
void leave(ncclComm* comm) {
  for (const auto& [handle, _] : comm->registered) delete static_cast<char*>(handle);
  Group& group = *comm->group;
  for (auto& [number, parts] : group.waiting) {
    auto& mine = parts[comm->rank];
    if (mine && mine->kind != Kind::Split) host_cuda::end_work(mine->stream);
    mine.reset();
  }
  group.members[comm->rank] = nullptr;
  g_comms.erase(comm);
  if (group.mail) group.reader = {};  // ends, and is waited for: it never waits for g_mutex
  delete comm;
}

}  // namespace

ncclResult_t ncclGetVersion(int* version) {
  *version = t_version;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "remote process exited or there was a network error" : "an error of the test";
}
const char* ncclGetLastError(ncclComm_t) {
  const std::lock_guard lock(g_mutex);
  return g_last_error.c_str();
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const std::lock_guard lock(g_mutex);
  *id = {};
  std::snprintf(id->internal, sizeof id->internal, "\n%d", ++g_last_id);
  return ordered("ncclGetUniqueId");
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  if (config->blocking != 0) return ncclInvalidArgument;  // who waits here cannot give up
  if (const ncclResult_t result = ordered("ncclCommInitRankConfig")) return result;
  const std::lock_guard lock(g_mutex);
  auto& group = g_groups[std::string(id.internal, sizeof id.internal)];
  if (!group) group = std::make_shared<Group>(ranks);
  *comm = make_comm(group, static_cast<size_t>(rank), current_device());
  if (const char* const folder = std::getenv("HOST_NCCL_MAIL")) {
    group->mail.emplace(folder, id.internal + 1, static_cast<size_t>(rank), group->ranks);
    const std::string seat = seat_of_this_rank();
    group->mail->put("hello", std::as_bytes(std::span(seat)));
    read_mail(group, static_cast<size_t>(rank));
  }
  return state_of(**comm);
}
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* part, ncclConfig_t* config) {
  if (config->blocking != 0) return ncclInvalidArgument;
  *part = nullptr;
  const ncclResult_t result = post(comm, {.kind = Kind::Split, .color = color, .key = key, .split = part});
  return result == ncclInProgress ? ncclSuccess : result;  // so say 2.18 to 2.30, while the parent is in progress
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  const std::lock_guard lock(g_mutex);
  *state = state_of(*comm);
  return ncclSuccess;
}
ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  const std::lock_guard lock(g_mutex);
  if (const ncclResult_t result = readiness_of(*comm)) return result;
  comm->is_finalized = true;
  return ncclInProgress;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  const std::lock_guard lock(g_mutex);
  if (!comm->is_finalized) misused("a communicator is destroyed that is not finalized");
  if (!comm->registered.empty()) misused("a communicator is destroyed that has registered buffers");
  leave(comm);
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  const int device = comm->device;
  {
    const std::lock_guard lock(g_mutex);
    for (ncclComm* const member : comm->group->members)
      if (member) member->error = ncclRemoteError;  // their connection to it ends
    leave(comm);
  }
  // It frees memory, for which CUDA waits for all that the device does, kernels of other communicators too.
  cudaSetDevice(device);
  cudaDeviceSynchronize();
  return ncclSuccess;
}

ncclResult_t ncclMemAlloc(void** address, size_t bytes) {
  if (const ncclResult_t result = ordered("ncclMemAlloc")) return result;
  if (cudaMalloc(address, bytes) != cudaSuccess) return ncclUnhandledCudaError;
  const std::lock_guard lock(g_mutex);
  g_memory[static_cast<std::byte*>(*address)] = bytes;
  return ncclSuccess;
}
ncclResult_t ncclMemFree(void* address) {
  const std::lock_guard lock(g_mutex);
  if (g_memory.erase(static_cast<std::byte*>(address)) == 0)
    return misused("memory is freed that is not ncclMemAlloc's");
  for (const ncclComm* const comm : g_comms)
    if (place_of(*comm, static_cast<std::byte*>(address))) misused("memory is freed that is registered");
  return cudaFree(address) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}
ncclResult_t ncclCommRegister(ncclComm_t comm, void* address, size_t bytes, void** handle) {
  if (const ncclResult_t result = ordered("ncclCommRegister")) return result;
  const std::lock_guard lock(g_mutex);
  const auto* const begin = static_cast<std::byte*>(address);
  const auto memory = g_memory.find(begin);
  if (memory == g_memory.end() || memory->second < bytes)
    return misused("memory is registered that is not ncclMemAlloc's");
  if (place_of(*comm, begin)) return misused("memory is registered twice");
  *handle = new char;
  comm->registered[*handle] = {begin, bytes};
  return ncclSuccess;
}
ncclResult_t ncclCommDeregister(ncclComm_t comm, void* handle) {
  const std::lock_guard lock(g_mutex);
  if (comm->registered.erase(handle) == 0) return misused("a handle is deregistered that is none");
  delete static_cast<char*>(handle);
  return ncclSuccess;
}

ncclResult_t ncclAllGather(const void* from, void* to, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  return post(comm, part_with({Kind::AllGather, type, stream}, from, to, count));
}
ncclResult_t ncclReduceScatter(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream) {
  Part part = part_with({Kind::ReduceScatter, type, stream}, from, to, count);
  part.op = op;
  return post(comm, part);
}
ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  Part part = part_with({Kind::AllReduce, type, stream}, from, to, count);
  part.op = op;
  return post(comm, part);
}
ncclResult_t ncclBroadcast(const void* from, void* to, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream) {
  Part part = part_with({Kind::Broadcast, type, stream}, from, to, count);
  part.root = root;
  return post(comm, part);
}

ncclResult_t ncclSend(const void* from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  if (t_depth == 0) return ncclInvalidUsage;
  t_exchange.sends.push_back({const_cast<void*>(from), count * size_of(type), peer});
  t_exchange.stream = stream;
  t_exchange_of = comm;
  return ncclSuccess;
}
ncclResult_t ncclRecv(void* to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  if (t_depth == 0) return ncclInvalidUsage;
  t_exchange.receives.push_back({to, count * size_of(type), peer});
  t_exchange.stream = stream;
  t_exchange_of = comm;
  return ncclSuccess;
}
ncclResult_t ncclGroupStart() {
  ++t_depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (--t_depth > 0) return ncclSuccess;
  if (t_exchange_of) {
    Part mine{.kind = Kind::Exchange};
    std::swap(mine, t_exchange);
    return post(std::exchange(t_exchange_of, nullptr), std::move(mine));
  }
  return std::exchange(t_grouped, nullptr) ? ncclInProgress : ncclSuccess;
}

namespace host_nccl {

void set_version(int version) {
  t_version = version;
}
void fail_next(const char* call, ncclResult_t result) {
  t_failures[call] = result;
}
void set_last_error(std::string text) {
  const std::lock_guard lock(g_mutex);
  g_last_error = std::move(text);
}
void break_connections() {
  const std::lock_guard lock(g_mutex);
  for (ncclComm* const comm : g_comms) comm->error = ncclRemoteError;
}
std::vector<std::string> misuses() {
  const std::lock_guard lock(g_mutex);
  return std::exchange(g_misuses, {});
}
size_t registrations() {
  const std::lock_guard lock(g_mutex);
  size_t sum = 0;
  for (const ncclComm* const comm : g_comms) sum += comm->registered.size();
  return sum;
}

}  // namespace host_nccl
