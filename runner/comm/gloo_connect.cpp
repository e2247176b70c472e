#include "comm/gloo_connect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gloo/common/error.h>
#include <gloo/transport/tcp/device.h>
#include <spdlog/spdlog.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <bit>
#include <csignal>
#include <cstring>
#include <system_error>

#include "base/error.h"
#include "base/text.h"
#include "comm/shared_channel.h"
#include "comm/store_rounds.h"
#include "comm/tcp_channel.h"

namespace trainyard::comm {
namespace {

// A rank's rings: enough for pieces to flow, small enough for the 64 MB that a pod's /dev/shm has.
constexpr size_t kSegmentBytes = size_t{8} << 20;
constexpr size_t kLeastRing = size_t{64} << 10, kMostRing = size_t{1} << 20;
// A rank's posted TCP buffers, four chunks a peer.
constexpr size_t kInboundBytes = size_t{16} << 20;
constexpr size_t kLeastChunk = size_t{64} << 10, kMostChunk = size_t{512} << 10;

uint64_t random_number() {
  uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != sizeof number)
    throw std::system_error(errno, std::generic_category(), "random bytes");
  return number;
}

/// What a rank says of itself first.
struct Introduction {
  uint64_t session;     ///< rank 0's counts
  std::string segment;  ///< identity; empty: it shares no memory
  std::string host;

  [[nodiscard]] std::string text() const { return fmt::format("{}\n{}\n{}", session, segment, host); }
  static Introduction parse(const std::string& text) {
    const auto lines = split(text, '\n');
    if (lines.size() != 3)
      throw PeerError(fmt::format("a rank introduces itself in {} lines, not 3: another version?", lines.size()));
    return {.session = std::stoull(lines[0]), .segment = lines[1], .host = lines[2]};
  }
};

/// The peers' memory, as far as this rank and they can both open each other's.
struct Neighbours {
  std::optional<SharedSegment> own;
  std::vector<std::optional<SharedSegment>> peers;  ///< by rank
  [[nodiscard]] std::vector<int> ranks() const {
    std::vector<int> found;
    for (size_t rank = 0; rank < peers.size(); ++rank)
      if (peers[rank]) found.push_back(static_cast<int>(rank));
    return found;
  }
};

std::optional<SharedSegment> own_segment(const Settings& settings) {
  if (!settings.shared_memory) return std::nullopt;
  try {
    return SharedSegment(settings.shared_folder);
  } catch (const std::system_error& error) {
    spdlog::warn("no shared memory with ranks of this host, TCP instead: {}", error.what());
    return std::nullopt;
  }
}

/// One character a rank, '1' where it was opened.
std::string opened_by(const Neighbours& neighbours) {
  std::string flags;
  for (const auto& peer : neighbours.peers) flags += peer ? '1' : '0';
  return flags;
}

/// Agrees with the peers who can share memory with whom. Sharing must go both ways and have room on both sides.
Neighbours find_neighbours(const Settings& settings, StoreRounds& rounds, const Roster& roster,
                           const std::vector<std::string>& identities, std::optional<SharedSegment> own) {
  Neighbours found{.own = std::move(own), .peers = {}};
  for (int peer = 0; peer < roster.world(); ++peer) {
    const bool can = found.own && peer != roster.rank && !identities[peer].empty();
    found.peers.push_back(can ? SharedSegment::open(settings.shared_folder, identities[peer]) : std::nullopt);
  }
  const auto opened = rounds.round("opened", opened_by(found));
  if (found.own) found.own->unlink();  // whoever could open it has
  for (int peer = 0; peer < roster.world(); ++peer)
    if (opened[peer][roster.rank] != '1') found.peers[peer].reset();
  return found;
}

/// What an owner says of its segment: the size of a ring, then the ranks that the rings are for.
struct Rings {
  size_t bytes = 0;
  std::vector<int> ranks;

  [[nodiscard]] std::string text() const { return fmt::format("{} {}", bytes, fmt::join(ranks, " ")); }
  static Rings parse(const std::string& text) {
    Rings rings;
    const auto words = split(text, ' ');
    rings.bytes = static_cast<size_t>(parse_int(words[0]).value_or(0));
    for (size_t i = 1; i < words.size(); ++i)
      if (const auto rank = parse_int(words[i])) rings.ranks.push_back(static_cast<int>(*rank));
    return rings;
  }
  [[nodiscard]] int count() const { return static_cast<int>(ranks.size()); }
  [[nodiscard]] int index_of(int rank) const {
    return static_cast<int>(std::ranges::find(ranks, rank) - ranks.begin());
  }
};

/// Gives every neighbour its ring, in the memory of each; who has no room for them is nobody's neighbour.
std::vector<std::unique_ptr<Channel>> share_rings(StoreRounds& rounds, const Roster& roster, Neighbours& found,
                                                  std::optional<SharedSegment>& own, size_t most_ring) {
  std::vector<std::unique_ptr<Channel>> channels(static_cast<size_t>(roster.world()));
  if (found.own) own.emplace(std::move(*found.own));
  Rings mine{.bytes = 0, .ranks = found.ranks()};
  if (!mine.ranks.empty()) {
    mine.bytes = std::clamp(std::bit_floor(kSegmentBytes / mine.ranks.size()), kLeastRing, most_ring);
    if (!own->reserve(mine.count(), mine.bytes)) {
      spdlog::warn("rank {}: the shared memory folder has no room for {}, TCP instead", roster.numbers[roster.rank],
                   human_bytes(mine.bytes * mine.ranks.size()));
      mine = {};
    }
  }
  const auto rings = rounds.round("rings", mine.text());
  if (mine.ranks.empty()) return channels;
  own->map(mine.count(), mine.bytes);
  for (const int peer : mine.ranks) {
    const Rings theirs = Rings::parse(rings[peer]);
    const int place = theirs.index_of(roster.rank);
    if (place == theirs.count()) continue;
    found.peers[peer]->map(theirs.count(), theirs.bytes);
    channels[peer] = std::make_unique<SharedChannel>(*own, mine.index_of(peer), std::move(*found.peers[peer]), place);
  }
  return channels;
}

std::string hex(const std::vector<char>& bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

std::vector<char> from_hex(const std::string& text) {
  std::vector<char> bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16)));
  return bytes;
}

// gloo writes to its sockets without MSG_NOSIGNAL: a peer that closes first would end the process.
void ignore_broken_pipes() {
  struct sigaction action {};
  if (::sigaction(SIGPIPE, nullptr, &action) == 0 && action.sa_handler == SIG_DFL) std::signal(SIGPIPE, SIG_IGN);
}

std::shared_ptr<gloo::transport::Device> make_device(const std::string& address) {
  ignore_broken_pipes();
  if (address.empty()) throw InputError("comm: no address for TCP to the other ranks was given");
  gloo::transport::tcp::attr attributes;
  attributes.hostname = address;
  try {
    return gloo::transport::tcp::CreateDevice(attributes);
  } catch (const std::exception& error) {
    throw InputError(fmt::format("comm: cannot use address {} for TCP to the other ranks: {}", address, error.what()));
  }
}

/// Adds TCP channels to the peers that have none yet.
void add_tcp(GlooRank& rank, StoreRounds& rounds, const Roster& roster, PeerExchange::Parts& parts) {
  auto& channels = parts.channels;
  std::vector<int> peers;
  for (int peer = 0; peer < roster.world(); ++peer)
    if (peer != roster.rank && !channels[peer]) peers.push_back(peer);
  std::shared_ptr<gloo::transport::Context> context;
  std::vector<std::string> addresses(static_cast<size_t>(roster.world()));  // where each peer finds this rank, in hex
  if (!peers.empty()) {
    if (!rank.device) rank.device = make_device(rank.settings.address);
    context = rank.device->createContext(roster.rank, roster.world());
    context->setTimeout(rank.settings.timeout / 5);  // gloo waits five times this for a connection
  }
  for (const int peer : peers) {
    addresses[peer] = hex(context->createPair(peer)->address().bytes());
  }
  const auto all = rounds.round("tcp", fmt::format("{}", fmt::join(addresses, " ")));
  const size_t chunk = std::clamp(std::bit_floor(kInboundBytes / 4 / channels.size()), kLeastChunk, kMostChunk);
  for (const int peer : peers) {
    try {
      context->getPair(peer)->connect(from_hex(split(all[peer], ' ').at(static_cast<size_t>(roster.rank))));
    } catch (const gloo::Exception& error) {
      throw PeerError(fmt::format("rank {}: no TCP connection to {}: {}", roster.numbers[roster.rank],
                                  roster.names(std::array{peer}), error.what()));
    }
    channels[peer] = std::make_unique<TcpChannel>(context, peer, chunk, parts.bell());
  }
}

}  // namespace

std::unique_ptr<PeerExchange> connect_peers(GlooRank& rank, Roster roster, const std::string& prefix) {
  const Settings& settings = rank.settings;
  StoreRounds rounds(*settings.store, roster, prefix, settings.timeout);
  auto parts = std::make_unique<PeerExchange::Parts>();
  auto own = own_segment(settings);

  const Introduction mine{.session = random_number(), .segment = own ? own->identity() : "", .host = settings.host};
  std::vector<std::string> segments;
  roster.hosts.clear();
  for (const auto& text : rounds.round("hello", mine.text())) {
    const Introduction peer = Introduction::parse(text);
    if (segments.empty()) parts->session = peer.session;
    segments.push_back(peer.segment);
    roster.hosts.push_back(peer.host);
  }

  Neighbours neighbours = find_neighbours(settings, rounds, roster, segments, std::move(own));
  // NCCL has need of that memory, and beside it only a few numbers a step go this way.
  const size_t most_ring = settings.device.kind == DeviceKind::Cuda ? kLeastRing : kMostRing;
  parts->channels = share_rings(rounds, roster, neighbours, parts->segment, most_ring);
  add_tcp(rank, rounds, roster, *parts);
  parts->roster = std::move(roster);
  return std::make_unique<PeerExchange>(std::move(parts));
}

}  // namespace trainyard::comm
