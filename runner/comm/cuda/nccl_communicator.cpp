#include "comm/cuda/nccl_communicator.h"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <array>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/error.h"
#include "comm/backend.h"
#include "comm/checks.h"
#include "comm/stream_waits.h"
#include "tensor/caching_allocator.h"

namespace trainyard::comm {
namespace {

ncclDataType_t nccl_type_of(DType dtype) {
  switch (dtype) {
    case DType::Float32:
      return ncclFloat32;
    case DType::Float64:
      return ncclFloat64;
    case DType::BFloat16:
      return ncclBfloat16;
    case DType::Float16:
      return ncclFloat16;
    case DType::Int32:
      return ncclInt32;
    case DType::Int64:
      return ncclInt64;
    case DType::Float8E4M3:  // moved, never summed
    case DType::Float8E5M2:
    case DType::UInt8:
      return ncclUint8;
  }
  throw std::logic_error("a dtype without a name");
}

ncclRedOp_t nccl_op_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::Sum:
      return ncclSum;
    case ReduceOp::Max:
      return ncclMax;
    case ReduceOp::Min:
      return ncclMin;
  }
  throw std::logic_error("a reduction without a name");
}

size_t count_of(const Tensor& tensor) {
  return static_cast<size_t>(tensor.count());
}

/// Where a tensor's memory is used: on the communicator's stream until who waits for the collective is behind it.
using Uses = std::vector<std::shared_ptr<StreamUse>>;

class NcclWork final : public Work::State {
 public:
  NcclWork(std::shared_ptr<NcclWatch> watch, std::shared_ptr<NcclFlight> flight, Device device, Uses uses)
      : watch_(std::move(watch)), flight_(std::move(flight)), device_(device), uses_(std::move(uses)) {}
  void wait() override {
    watch_->throw_if_lost(*flight_);
    StreamWaits::gate(*flight_->end, device_);
    for (const auto& use : uses_) use->is_behind(current_stream(device_));
  }
  void wait_on_host() override { watch_->await(*flight_); }
  bool holds_the_host() const override { return false; }

 private:
  const std::shared_ptr<NcclWatch> watch_;
  const std::shared_ptr<NcclFlight> flight_;
  const Device device_;
  const Uses uses_;
};

/// Collectives of a device's tensors go to NCCL, on a stream of the communicator's own; those of the host's to `host`.
class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(std::shared_ptr<NcclWatch> watch, std::shared_ptr<NcclGroup> group,
                   std::unique_ptr<Communicator> host, NcclPlace place)
      : watch_(std::move(watch)),
        group_(std::move(group)),
        host_(std::move(host)),
        device_(place.device),
        user_buffers_(place.user_buffers),
        stream_(device_) {}
  ~NcclCommunicator() override {
    if (!closed_) watch_->abandon(*group_);
  }

  int rank() const override { return group_->roster().rank; }
  int world() const override { return group_->roster().world(); }
  std::chrono::milliseconds timeout() const override { return host_->timeout(); }
  std::string transport() const override {
    return fmt::format("NCCL {} from {} ({}){}; of host memory {}", nccl_version_text(nccl().version()),
                       to_string(device_), properties_of(device_).name,
                       user_buffers_ ? ", with registered buffers" : "", host_->transport());
  }
  CollectiveObserver on_collective(CollectiveObserver observer) override {
    return watch_->on_collective(std::move(observer));  // the host's share it
  }
  std::shared_ptr<const FlightRecord> flight_record() const override { return host_->flight_record(); }

  Work all_gather_coalesced(std::span<const Tensor> inputs, std::span<Tensor> outputs, std::string label) override {
    if (are_on_host(inputs)) return host_->all_gather_coalesced(inputs, outputs, std::move(label));
    const size_t bytes = check_parts_and_wholes("all_gather", inputs, outputs, seat());
    return issue("all_gather", std::move(label), bytes, {inputs, outputs}, [&](ncclComm_t comm, cudaStream_t stream) {
      return as_one(inputs.size(), [&](size_t i) {
        return nccl().all_gather(inputs[i].raw(), outputs[i].raw(), count_of(inputs[i]),
                                 nccl_type_of(inputs[i].dtype()), comm, stream);
      });
    });
  }

  Work reduce_scatter_coalesced(std::span<const Tensor> inputs, std::span<Tensor> outputs, std::string label) override {
    if (are_on_host(inputs)) return host_->reduce_scatter_coalesced(inputs, outputs, std::move(label));
    const size_t bytes = check_parts_and_wholes("reduce_scatter", outputs, inputs, seat());
    for (const Tensor& input : inputs) check_summed("reduce_scatter", input);
    return issue("reduce_scatter", std::move(label), bytes, {inputs, outputs},
                 [&](ncclComm_t comm, cudaStream_t stream) {
                   return as_one(inputs.size(), [&](size_t i) {
                     return nccl().reduce_scatter(inputs[i].raw(), outputs[i].raw(), count_of(outputs[i]),
                                                  nccl_type_of(inputs[i].dtype()), ncclSum, comm, stream);
                   });
                 });
  }

  Work all_reduce(Tensor& values, ReduceOp op, std::string label) override {
    if (are_on_host({&values, 1})) return host_->all_reduce(values, op, std::move(label));
    check_usable("all_reduce", values, device_);
    check_summed("all_reduce", values);
    return issue("all_reduce", std::move(label), values.bytes(), {{&values, 1}},
                 [&](ncclComm_t comm, cudaStream_t stream) {
                   return nccl().all_reduce(values.raw(), values.raw(), count_of(values), nccl_type_of(values.dtype()),
                                            nccl_op_of(op), comm, stream);
                 });
  }

  Work broadcast(Tensor& values, int root, std::string label) override {
    if (are_on_host({&values, 1})) return host_->broadcast(values, root, std::move(label));
    check_usable("broadcast", values, device_);
    check_root(root, world());
    return issue("broadcast", std::move(label), values.bytes(), {{&values, 1}},
                 [&](ncclComm_t comm, cudaStream_t stream) {
                   return nccl().broadcast(values.raw(), values.raw(), count_of(values), nccl_type_of(values.dtype()),
                                           root, comm, stream);
                 });
  }

  Work all_to_all(const Tensor& input, Tensor& output, std::string label) override {
    if (are_on_host({&input, 1})) return host_->all_to_all(input, output, std::move(label));
    check_exchange(input, output, seat());
    return issue("all_to_all", std::move(label), input.bytes(), {{&input, 1}, {&output, 1}},
                 [&](ncclComm_t comm, cudaStream_t stream) { return exchange(input, output, comm, stream); });
  }

  void name_ranks(std::vector<std::string> places) override { group_->roster().places->set(std::move(places)); }
  Work shift(const Tensor& input, Tensor& output, std::string label) override {
    if (are_on_host({&input, 1})) return host_->shift(input, output, std::move(label));
    check_shift(input, output, seat());
    const ncclDataType_t type = nccl_type_of(input.dtype());
    return issue("shift", std::move(label), input.bytes(), {{&input, 1}, {&output, 1}},
                 [&](ncclComm_t comm, cudaStream_t stream) {
                   return as_one(2, [&](size_t i) {
                     return i == 0 ? nccl().send(input.raw(), count_of(input), type, rank_after(rank(), world()), comm,
                                                 stream)
                                   : nccl().recv(output.raw(), count_of(output), type, rank_before(rank(), world()),
                                                 comm, stream);
                   });
                 });
  }

  void barrier() override { host_->barrier(); }

  std::unique_ptr<Communicator> split(int color, std::string name) override {
    auto host = host_->split(color, name);
    const std::vector<int> members = members_of(*host);
    auto part = std::make_shared<NcclGroup>(group_->roster().of(members), name,
                                            fmt::format("{}/{}.{}", group_->prefix(), ++splits_, members.front()));
    watch_->add(part);
    const auto flight = watch_->begin(group_, "split", std::move(name), 0);
    watch_->settle(*flight, *group_, group_->split(members.front(), *part));
    part->adopt_split();
    watch_->settle(*flight, *part, ncclInProgress);
    watch_->ended(*flight);
    return std::make_unique<NcclCommunicator>(watch_, std::move(part), std::move(host),
                                              NcclPlace{device_, user_buffers_});
  }

  void close(std::chrono::steady_clock::time_point deadline) override {
    if (closed_) return;
    if (!watch_->await_all(*group_, deadline) || !finish(deadline)) {
      watch_->abandon(*group_);
      throw PeerError(
          fmt::format("rank {}: the communicator did not come to its end in time; a peer has not finished "
                      "its collectives",
                      group_->roster().numbers[static_cast<size_t>(rank())]));
    }
    closed_ = true;
    host_->close(deadline);
  }

 private:
  /// Undefined ones among them: it refuses those.
  static bool are_on_host(std::span<const Tensor> tensors) {
    return tensors.empty() || tensors.front().device().kind == DeviceKind::Cpu;
  }
  [[nodiscard]] bool finish(std::chrono::steady_clock::time_point deadline) {
    if (user_buffers_) user_buffers_->deregister_from(group_);
    return group_->finish(deadline);
  }
  [[nodiscard]] Seat seat() const { return {.rank = rank(), .world = world(), .device = device_}; }

  /// `tensors`: all that it uses.
  template <typename Launch>
  Work issue(const char* name, std::string label, size_t bytes, std::initializer_list<std::span<const Tensor>> tensors,
             Launch&& launch) {
    if (closed_) throw std::logic_error(fmt::format("{} on a closed communicator", name));
    const auto flight = watch_->begin(group_, name, std::move(label), bytes);
    const Event ready(device_);  // what the caller's stream has been given
    const StreamScope scope(stream_);
    ready.gate();
    Event start(device_);
    Uses uses;
    for (const std::span<const Tensor> some : tensors)
      for (const Tensor& tensor : some)
        if (auto use = tensor.storage()->used_on(stream_.id())) uses.push_back(std::move(use));
    watch_->settle(*flight, *group_, register_buffers(tensors));
    watch_->settle(*flight, *group_, group_->call([&](ncclComm_t comm) {
      return launch(comm, static_cast<cudaStream_t>(stream_.id().handle));
    }));
    watch_->launched(*flight, std::move(start), Event(device_));
    return Work(std::make_shared<NcclWork>(watch_, flight, device_, std::move(uses)));
  }

  ncclResult_t register_buffers(std::initializer_list<std::span<const Tensor>> tensors) {
    ncclResult_t result = ncclSuccess;
    if (!user_buffers_) return result;
    for (auto some = tensors.begin(); some != tensors.end() && result == ncclSuccess; ++some)
      result = user_buffers_->register_with(group_, *some);
    return result;
  }

  /// Calls call(0), … call(count - 1) as one operation.
  template <typename Call>
  static ncclResult_t as_one(size_t count, const Call& call) {
    if (count == 1) return call(0);
    ncclResult_t result = nccl().group_start();
    for (size_t i = 0; i < count && is_under_way(result); ++i) result = call(i);
    const ncclResult_t ended = nccl().group_end();  // whatever came before it, else later calls were part of the group
    return is_under_way(result) ? ended : result;
  }

  /// Each pair of ranks has both a send and a receive.
  ncclResult_t exchange(const Tensor& input, Tensor& output, ncclComm_t comm, cudaStream_t stream) const {
    const ncclDataType_t type = nccl_type_of(input.dtype());
    const int64_t rows = input.size(0) / world();
    return as_one(static_cast<size_t>(2 * world()), [&](size_t i) {
      const int peer = static_cast<int>(i / 2);
      const Tensor sent = input.rows(peer * rows, rows);
      Tensor received = output.rows(peer * rows, rows);
      return i % 2 == 0 ? nccl().send(sent.raw(), count_of(sent), type, peer, comm, stream)
                        : nccl().recv(received.raw(), count_of(received), type, peer, comm, stream);
    });
  }

  /// The ranks of this communicator that are in `part`.
  std::vector<int> members_of(Communicator& part) const {
    Tensor mine = Tensor::from<int32_t>(std::array{rank()}, {1}), all = Tensor::empty({part.world()}, DType::Int32);
    part.all_gather(mine, all, "members").wait();
    const auto ranks = std::as_const(all).values<int32_t>();
    return {ranks.begin(), ranks.end()};
  }

  const std::shared_ptr<NcclWatch> watch_;
  const std::shared_ptr<NcclGroup> group_;
  const std::unique_ptr<Communicator> host_;
  const Device device_;
  NcclMemory* const user_buffers_;
  const Stream stream_;
  int splits_ = 0;
  bool closed_ = false;
};

}  // namespace

std::unique_ptr<Communicator> make_nccl_communicator(std::shared_ptr<NcclWatch> watch, std::shared_ptr<NcclGroup> group,
                                                     std::unique_ptr<Communicator> host, NcclPlace place) {
  return std::make_unique<NcclCommunicator>(std::move(watch), std::move(group), std::move(host), place);
}

}  // namespace trainyard::comm
