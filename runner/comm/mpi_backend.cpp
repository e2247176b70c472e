#include "comm/mpi_backend.h"

#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <climits>
#include <cstring>
#include <thread>
#include <utility>

#include "base/error.h"
#include "comm/backend.h"
#include "comm/mpi_runtime.h"
#include "comm/queued_communicator.h"
#include "comm/roster.h"
#include "tensor/convert.h"

namespace trainyard::comm {
namespace {

constexpr size_t kHostBytes = 256;

MPI_Datatype type_of(DType dtype) {
  switch (dtype) {
    case DType::Float32:
      return MPI_FLOAT;
    case DType::Float64:
      return MPI_DOUBLE;
    case DType::Int32:
      return MPI_INT32_T;
    case DType::Int64:
      return MPI_INT64_T;
    case DType::UInt8:
      return MPI_UINT8_T;
    case DType::BFloat16:
    case DType::Float16:
      break;  // MPI has none: summed as float32
    case DType::Float8E4M3:
    case DType::Float8E5M2:
      break;  // refused by check_summed()
  }
  return MPI_DATATYPE_NULL;
}

MPI_Op op_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::Sum:
      return MPI_SUM;
    case ReduceOp::Max:
      return MPI_MAX;
    case ReduceOp::Min:
      return MPI_MIN;
  }
  return MPI_OP_NULL;
}

int count_of_bytes(size_t bytes, size_t unit = 1) {
  if (bytes / unit > INT_MAX)
    throw std::invalid_argument(
        fmt::format("mpi moves at most {} elements a rank at once, not {}", INT_MAX, bytes / unit));
  return static_cast<int>(bytes / unit);
}

bool is_half(DType dtype) {
  return dtype == DType::BFloat16 || dtype == DType::Float16;
}

std::vector<float> widened(DType dtype, std::span<const std::byte> values) {
  std::vector<float> wide(values.size() / size_of(dtype));
  convert(dtype, values.data(), DType::Float32, std::as_writable_bytes(std::span(wide)).data(), wide.size());
  return wide;
}

void narrow_into(DType dtype, std::span<std::byte> to, std::span<const float> wide) {
  convert(DType::Float32, std::as_bytes(wide).data(), dtype, to.data(), wide.size());
}

std::span<std::byte> bytes_of(std::vector<float>& values) {
  return std::as_writable_bytes(std::span(values));
}

/// Nonblocking collectives of Open MPI, looked at until they are done or their time is over.
class Mpi final : public Backend {
 public:
  Mpi(std::shared_ptr<MpiRuntime> runtime, MPI_Comm comm, Roster roster, rendezvous::Store* store, std::string prefix)
      : runtime_(std::move(runtime)),
        comm_(comm),
        roster_(std::move(roster)),
        store_(store),
        prefix_(std::move(prefix)) {
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  }
  // comm_ is left to MPI_Finalize: freeing it is collective, and a destructor must not wait for peers.

  const Roster& roster() const override { return roster_; }
  int rank() const override { return roster_.rank; }
  int world() const override { return roster_.world(); }
  std::string transport() const override { return "Open MPI " + MpiRuntime::version(); }

  void all_gather(const Call& call, std::span<const std::byte> input, std::span<std::byte> output) override {
    const int bytes = count_of_bytes(input.size());
    const bool in_place = input.data() == slice_of(output, rank(), world()).data();
    run(call, [&](MPI_Request* request) {
      return MPI_Iallgather(in_place ? MPI_IN_PLACE : input.data(), bytes, MPI_BYTE, output.data(), bytes, MPI_BYTE,
                            comm_, request);
    });
  }

  void reduce_scatter(const Call& call, DType dtype, std::span<const std::byte> input,
                      std::span<std::byte> output) override {
    if (is_half(dtype)) {
      const auto wide = std::make_shared<std::vector<float>>(widened(dtype, input));
      const auto sum = std::make_shared<std::vector<float>>(output.size() / size_of(dtype));
      reduce_scatter(with(with(call, wide), sum), DType::Float32, bytes_of(*wide), bytes_of(*sum));
      return narrow_into(dtype, output, *sum);
    }
    // The output may be a slice of the input, which MPI does not allow.
    scratch_->resize(output.size());
    const int count = count_of_bytes(output.size(), size_of(dtype));
    run(with(call, scratch_), [&](MPI_Request* request) {
      return MPI_Ireduce_scatter_block(input.data(), scratch_->data(), count, type_of(dtype), MPI_SUM, comm_, request);
    });
    copy_bytes(*scratch_, output);
  }

  void all_reduce(const Call& call, DType dtype, ReduceOp op, std::span<std::byte> values) override {
    if (is_half(dtype)) {
      const auto wide = std::make_shared<std::vector<float>>(widened(dtype, values));
      all_reduce(with(call, wide), DType::Float32, op, bytes_of(*wide));
      return narrow_into(dtype, values, *wide);
    }
    const int count = count_of_bytes(values.size(), size_of(dtype));
    run(call, [&](MPI_Request* request) {
      return MPI_Iallreduce(MPI_IN_PLACE, values.data(), count, type_of(dtype), op_of(op), comm_, request);
    });
  }

  void broadcast(const Call& call, std::span<std::byte> values, int root) override {
    const int bytes = count_of_bytes(values.size());
    run(call, [&](MPI_Request* request) { return MPI_Ibcast(values.data(), bytes, MPI_BYTE, root, comm_, request); });
  }

  void all_to_all(const Call& call, std::span<const std::byte> input, std::span<std::byte> output) override {
    const int bytes = count_of_bytes(input.size() / static_cast<size_t>(world()));
    run(call, [&](MPI_Request* request) {
      return MPI_Ialltoall(input.data(), bytes, MPI_BYTE, output.data(), bytes, MPI_BYTE, comm_, request);
    });
  }

  /// It is an exchange of all, as that is one request: only the neighbours' parts have bytes.
  void shift(const Call& call, std::span<const std::byte> input, std::span<std::byte> output) override {
    struct Counts {
      std::vector<int> sent, received, none;
    };
    const auto ranks = static_cast<size_t>(world());
    const auto counts = std::make_shared<Counts>(
        Counts{std::vector<int>(ranks), std::vector<int>(ranks), std::vector<int>(ranks)});
    counts->sent[rank_after(rank(), world())] = count_of_bytes(input.size());
    counts->received[rank_before(rank(), world())] = count_of_bytes(output.size());
    run(with(call, counts), [&](MPI_Request* request) {
      return MPI_Ialltoallv(input.data(), counts->sent.data(), counts->none.data(), MPI_BYTE, output.data(),
                            counts->received.data(), counts->none.data(), MPI_BYTE, comm_, request);
    });
  }

  void barrier(const Call& call) override {
    run(call, [&](MPI_Request* request) { return MPI_Ibarrier(comm_, request); });
  }

  std::unique_ptr<Backend> split(const Call& call, std::span<const int> members, const std::string&) override {
    // MPI_Comm_split has no nonblocking form. Everybody has just met here, so it waits for nobody in particular.
    barrier(call);
    MPI_Comm part = MPI_COMM_NULL;
    {
      const MutexLock lock(runtime_->mutex());
      MPI_Comm_split(comm_, members.front(), rank(), &part);
    }
    return std::make_unique<Mpi>(runtime_, part, roster_.of(members), store_,
                                 fmt::format("{}/{}.{}", prefix_, ++splits_, members.front()));
  }

  void abort() noexcept override { is_aborted_ = true; }

 private:
  /// `call`, whose memory is `own` too.
  static Call with(Call call, std::shared_ptr<const void> own) {
    call.buffers = std::make_shared<std::array<std::shared_ptr<const void>, 2>>(
        std::array{std::move(call.buffers), std::move(own)});
    return call;
  }

  template <typename Start>
  void run(const Call& call, Start&& start) {
    ++collectives_;
    MPI_Request request = MPI_REQUEST_NULL;
    int code = call_mpi(call, [&] { return start(&request); });
    const auto begun = std::chrono::steady_clock::now();
    for (int is_done = 0; code == MPI_SUCCESS && is_done == 0;) {
      code = call_mpi(call, [&] { return MPI_Test(&request, &is_done, MPI_STATUS_IGNORE); });
      if (code == MPI_SUCCESS && is_done == 0) wait_a_little(call, begun);
    }
    if (code != MPI_SUCCESS)
      give_up(call, fmt::format("rank {}: {}: {}", roster_.numbers[rank()], call.text(), error_text(code)));
  }

  /// Any call may move what other requests wait for, so after one was given up none is made.
  template <typename Act>
  int call_mpi(const Call& call, const Act& act) {
    {
      const MutexLock lock(runtime_->mutex());
      if (!runtime_->is_given_up()) return act();
    }
    give_up(call, roster_.abandoned(call));
  }

  // Only the calls move MPI's data, so the pauses must be short against what has been waited already.
  void wait_a_little(const Call& call, std::chrono::steady_clock::time_point begun) {
    const auto passed = std::chrono::steady_clock::now() - begun;
    if (is_aborted_) give_up(call, roster_.abandoned(call));
    if (passed >= call.timeout) give_up(call, late_message(call));
    if (passed < std::chrono::microseconds(50)) return std::this_thread::yield();
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(passed / 32, std::chrono::microseconds(500)));
  }

  // MPI does not say for whom it waits. The ranks that wait do, in the store: who does not is missing.
  std::string late_message(const Call& call) const {
    std::vector<std::string> keys;
    for (int peer = 0; peer < world(); ++peer)
      keys.push_back(fmt::format("{}/late/{}/{}", prefix_, collectives_, peer));
    std::vector<int> missing;
    if (store_ != nullptr) {
      store_->set(keys[rank()], "waiting");
      const auto seen = store_->try_wait(keys, std::min(call.timeout, std::chrono::milliseconds(2000)));
      for (int peer = 0; peer < world(); ++peer)
        if (std::ranges::find(seen.missing, keys[peer]) != seen.missing.end()) missing.push_back(peer);
    }
    if (missing.empty())
      for (int peer = 0; peer < world(); ++peer)
        if (peer != rank()) missing.push_back(peer);
    return roster_.waited(call, missing);
  }

  /// MPI cannot cancel a collective, so its memory stays.
  [[noreturn]] void give_up(const Call& call, const std::string& message) {
    runtime_->give_up(call.buffers);
    throw PeerError(message);
  }

  static std::string error_text(int code) {
    std::array<char, MPI_MAX_ERROR_STRING> text{};
    int length = 0;
    MPI_Error_string(code, text.data(), &length);
    return {text.data(), static_cast<size_t>(length)};
  }

  const std::shared_ptr<MpiRuntime> runtime_;
  const MPI_Comm comm_;
  const Roster roster_;
  rendezvous::Store* const store_;
  const std::string prefix_;
  std::atomic<bool> is_aborted_{false};
  uint64_t collectives_ = 0;
  int splits_ = 0;
  const std::shared_ptr<std::vector<std::byte>> scratch_ = std::make_shared<std::vector<std::byte>>();
};

std::vector<std::string> hosts_of(MpiRuntime& runtime, MPI_Comm comm, const std::string& host) {
  const MutexLock lock(runtime.mutex());
  std::vector<char> all(static_cast<size_t>(runtime.world()) * kHostBytes);
  std::array<char, kHostBytes> mine{};
  host.copy(mine.data(), kHostBytes - 1);
  MPI_Allgather(mine.data(), kHostBytes, MPI_CHAR, all.data(), kHostBytes, MPI_CHAR, comm);
  std::vector<std::string> hosts;
  for (int rank = 0; rank < runtime.world(); ++rank)
    hosts.emplace_back(all.data() + static_cast<size_t>(rank) * kHostBytes);
  return hosts;
}

}  // namespace

std::unique_ptr<Communicator> connect_mpi(const Settings& settings, std::shared_ptr<Seen> seen) {
  const auto runtime = settings.mpi ? settings.mpi : MpiRuntime::start();
  if (runtime->world() != settings.world)
    throw InputError(
        fmt::format("mpirun started {} ranks, but the world has {}; start it as: mpirun -n {} trainyard train …",
                    runtime->world(), settings.world, settings.world));
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0;
  {
    const MutexLock lock(runtime->mutex());
    MPI_Comm_split(MPI_COMM_WORLD, 0, settings.rank, &comm);
    MPI_Comm_rank(comm, &rank);
  }
  if (rank != settings.rank)
    throw InputError(fmt::format("rank {} of this world is taken by another rank of mpirun's", settings.rank));
  Roster roster = roster_of_threads(settings.rank, settings.world);
  roster.hosts = hosts_of(*runtime, comm, settings.host);
  auto backend = std::make_unique<Mpi>(runtime, comm, std::move(roster), settings.store, settings.prefix);
  return std::make_unique<QueuedCommunicator>(std::move(backend), settings.timeout, "", std::move(seen));
}

}  // namespace trainyard::comm
