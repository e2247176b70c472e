#include "comm/gloo.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/gloo_connect.h"
#include "comm/peer_exchange.h"
#include "comm/queued_communicator.h"

namespace trainyard::comm {
namespace {

// Up to here everyone sends everything to everyone: one exchange instead of two.
constexpr size_t kDirectAllReduce = size_t{16} << 10;
// From here on the root's bytes go out once, in parts that the others pass on, instead of once a rank.
constexpr size_t kScatteredBroadcast = size_t{256} << 10;

/// Every collective is one or two exchanges between peers: each rank sends to each other directly what that one needs,
/// and adds what it gets in the order of the ranks.
class Gloo final : public Backend {
 public:
  Gloo(std::shared_ptr<GlooRank> shared, std::unique_ptr<PeerExchange> peers, std::string prefix)
      : shared_(std::move(shared)), peers_(std::move(peers)), prefix_(std::move(prefix)) {}

  const Roster& roster() const override { return peers_->roster(); }
  int rank() const override { return peers_->roster().rank; }
  int world() const override { return peers_->roster().world(); }
  std::string transport() const override { return peers_->transport(); }

  void all_gather(const Call& call, std::span<const std::byte> input, std::span<std::byte> output) override {
    copy_bytes(input, slice_of(output, rank(), world()));
    Into into;
    for (int peer = 0; peer < world(); ++peer) into.emplace_back(slice_of(output, peer, world()));
    CopySink sink(std::move(into));
    peers_->exchange(call, PeerExchange::Outgoing(ranks(), input), sink);
  }

  void reduce_scatter(const Call& call, DType dtype, std::span<const std::byte> input,
                      std::span<std::byte> output) override {
    PeerExchange::Outgoing outgoing;
    for (int peer = 0; peer < world(); ++peer) outgoing.emplace_back(slice_of(input, peer, world()));
    FoldSink sink({.dtype = dtype,
                   .op = ReduceOp::Sum,
                   .rank = rank(),
                   .world = world(),
                   .own = *outgoing[rank()],
                   .result = output});
    peers_->exchange(call, outgoing, sink);
  }

  void all_reduce(const Call& call, DType dtype, ReduceOp op, std::span<std::byte> values) override {
    if (values.size() <= kDirectAllReduce) return reduce_directly(call, dtype, op, values);
    const auto chunks = chunks_of(values, size_of(dtype));
    PeerExchange::Outgoing outgoing(chunks.begin(), chunks.end());
    const auto mine = chunks[rank()];
    FoldSink sink({.dtype = dtype, .op = op, .rank = rank(), .world = world(), .own = mine, .result = mine});
    peers_->exchange(call, outgoing, sink);
    gather_chunks(call, chunks, PeerExchange::Outgoing(ranks(), mine));
  }

  void broadcast(const Call& call, std::span<std::byte> values, int root) override {
    if (world() > 2 && values.size() >= kScatteredBroadcast) return broadcast_in_parts(call, values, root);
    PeerExchange::Outgoing outgoing(ranks());
    Into into(ranks());
    if (rank() == root) {
      outgoing.assign(ranks(), values);
    } else {
      into[root] = values;
    }
    CopySink sink(std::move(into));
    peers_->exchange(call, outgoing, sink);
  }

  void all_to_all(const Call& call, std::span<const std::byte> input, std::span<std::byte> output) override {
    copy_bytes(slice_of(input, rank(), world()), slice_of(output, rank(), world()));
    PeerExchange::Outgoing outgoing;
    Into into;
    for (int peer = 0; peer < world(); ++peer) {
      outgoing.emplace_back(slice_of(input, peer, world()));
      into.emplace_back(slice_of(output, peer, world()));
    }
    CopySink sink(std::move(into));
    peers_->exchange(call, outgoing, sink);
  }

  void shift(const Call& call, std::span<const std::byte> input, std::span<std::byte> output) override {
    PeerExchange::Outgoing outgoing(ranks());
    Into into(ranks());
    outgoing[rank_after(rank(), world())] = input;
    into[rank_before(rank(), world())] = output;
    CopySink sink(std::move(into));
    peers_->exchange(call, outgoing, sink);
  }

  void barrier(const Call& call) override {
    CopySink sink(Into(ranks(), std::span<std::byte>()));
    peers_->exchange(call, PeerExchange::Outgoing(ranks(), std::span<const std::byte>()), sink);
  }

  std::unique_ptr<Backend> split(const Call&, std::span<const int> members, const std::string&) override {
    const std::string prefix = fmt::format("{}/{}.{}", prefix_, ++splits_, members.front());
    auto peers = connect_peers(*shared_, peers_->roster().of(members), prefix);
    return std::make_unique<Gloo>(shared_, std::move(peers), prefix);
  }

  void abort() noexcept override { peers_->abort(); }

 private:
  using Into = std::vector<std::optional<std::span<std::byte>>>;

  [[nodiscard]] size_t ranks() const { return static_cast<size_t>(world()); }

  void reduce_directly(const Call& call, DType dtype, ReduceOp op, std::span<std::byte> values) {
    result_.resize(values.size());  // `values` is on its way out until the exchange is over
    FoldSink sink({.dtype = dtype, .op = op, .rank = rank(), .world = world(), .own = values, .result = result_});
    peers_->exchange(call, PeerExchange::Outgoing(ranks(), values), sink);
    copy_bytes(result_, values);
  }

  std::vector<std::span<std::byte>> chunks_of(std::span<std::byte> values, size_t element_bytes) const {
    std::vector<std::span<std::byte>> chunks;
    for (int peer = 0; peer < world(); ++peer)
      chunks.push_back(chunk_bytes(values, element_bytes, world(), peer));
    return chunks;
  }

  /// Rank `without` takes none.
  void gather_chunks(const Call& call, const std::vector<std::span<std::byte>>& chunks,
                     const PeerExchange::Outgoing& outgoing, int without = -1) {
    Into into(chunks.begin(), chunks.end());
    if (rank() == without) std::ranges::fill(into, std::nullopt);
    CopySink sink(std::move(into));
    peers_->exchange(call, outgoing, sink);
  }

  void broadcast_in_parts(const Call& call, std::span<std::byte> values, int root) {
    const auto chunks = chunks_of(values, 1);
    PeerExchange::Outgoing parts(ranks());
    Into mine(ranks());
    if (rank() == root) {
      parts.assign(chunks.begin(), chunks.end());
    } else {
      mine[root] = chunks[rank()];
    }
    CopySink sink(std::move(mine));
    peers_->exchange(call, parts, sink);

    PeerExchange::Outgoing outgoing(ranks(), chunks[rank()]);
    outgoing[root].reset();  // it has them all
    gather_chunks(call, chunks, outgoing, root);
  }

  const std::shared_ptr<GlooRank> shared_;
  const std::unique_ptr<PeerExchange> peers_;
  const std::string prefix_;
  int splits_ = 0;
  std::vector<std::byte> result_;
};

}  // namespace

std::unique_ptr<Communicator> connect_gloo(const Settings& settings, std::shared_ptr<Seen> seen) {
  auto shared = std::make_shared<GlooRank>(GlooRank{.settings = settings, .device = nullptr});
  auto peers = connect_peers(*shared, roster_of_threads(settings.rank, settings.world), settings.prefix);
  return std::make_unique<QueuedCommunicator>(std::make_unique<Gloo>(shared, std::move(peers), settings.prefix),
                                              settings.timeout, "", std::move(seen));
}

}  // namespace trainyard::comm
