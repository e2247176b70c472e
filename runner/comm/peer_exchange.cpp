#include "comm/peer_exchange.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "base/error.h"

namespace trainyard::comm {
namespace {

using Clock = std::chrono::steady_clock;

// Looks for work before sleeping: some microseconds, as there may be no core to spare.
constexpr int kSpins = 30;
// How soon a dead process is noticed, and at what cost: one system call a peer.
constexpr std::chrono::milliseconds kLook{200}, kSleep{50};
// A rank that waits for one that waits itself gives up this much later, and then knows whom that one blames.
constexpr std::chrono::milliseconds kGrace{1000};

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

struct PeerExchange::Progress {
  struct Peer {
    bool sends = false;           ///< this rank sends it something
    std::optional<size_t> bytes;  ///< that it sends
    bool has_header = false;
  };
  std::vector<Peer> peers;
  Clock::time_point last_move, last_look;
  int idle = 0;              ///< looks in vain since the last move
  std::vector<int> waiting;  ///< peers with which the exchange is not done
  std::optional<int> lost;   ///< a peer that is gone, and how
  std::string how;
};

std::string PeerExchange::transport() const {
  std::map<std::string, std::vector<int>> peers;
  for (int peer = 0; peer < roster().world(); ++peer)
    if (const auto& channel = parts_->channels[peer]) peers[channel->name()].push_back(roster().numbers[peer]);
  std::string text;
  for (const auto& [name, ranks] : peers)
    text += fmt::format("{}{} to rank{} {}", text.empty() ? "" : ", ", name, ranks.size() == 1 ? "" : "s",
                        fmt::join(ranks, ", "));
  return text.empty() ? "none" : text;
}

PeerExchange::~PeerExchange() {
  leave({});
}

void PeerExchange::abort() noexcept {
  is_aborted_ = true;
  parts_->bell().ring();
  for (const auto& channel : parts_->channels)
    if (channel) channel->abort();
}

void PeerExchange::exchange(const Call& call, const Outgoing& outgoing, Sink& sink) {
  Progress progress;
  progress.peers.resize(outgoing.size());
  for (size_t peer = 0; peer < outgoing.size(); ++peer)
    if (parts_->channels[peer]) progress.peers[peer].bytes = sink.expected(static_cast<int>(peer));
  progress.last_move = progress.last_look = Clock::now();
  begin(call, outgoing, progress);
  for (;;) {
    const uint32_t ticket = parts_->bell().ticket();
    const bool moved = advance(call, sink, progress);
    if (progress.waiting.empty()) return flush(call, progress);
    if (moved) {
      progress.idle = 0;
      continue;
    }
    if (++progress.idle < kSpins) {
      relax();
      continue;
    }
    if (progress.idle == kSpins) progress.last_move = Clock::now();
    look_after_peers(call, progress);
    if (!progress.lost) parts_->bell().wait(ticket, kSleep);
  }
}

void PeerExchange::begin(const Call& call, const Outgoing& outgoing, Progress& progress) {
  if (is_aborted_) throw PeerError(roster().abandoned(call));
  MessageHeader header{.session = parts_->session, .number = ++exchanges_, .bytes = 0, .name = {}};
  call.name.copy(header.name, sizeof header.name - 1);
  for (int peer = 0; peer < roster().world(); ++peer) {
    if (!outgoing[peer] || !parts_->channels[peer]) continue;
    header.bytes = outgoing[peer]->size();
    progress.peers[peer].sends = true;
    try {
      parts_->channels[peer]->send(header, *outgoing[peer]);
    } catch (const ChannelLost& lost) {
      fail_lost(call, peer, lost.what());
    }
  }
}

bool PeerExchange::advance(const Call& call, Sink& sink, Progress& progress) {
  bool moved = false;
  progress.waiting.clear();
  for (int peer = 0; peer < roster().world(); ++peer) {
    if (!parts_->channels[peer]) continue;
    try {
      moved |= advance_peer(call, sink, progress, peer);
    } catch (const ChannelLost& lost) {
      fail_lost(call, peer, lost.what());
    }
  }
  return moved;
}

bool PeerExchange::advance_peer(const Call& call, Sink& sink, Progress& progress, int peer) {
  Channel& channel = *parts_->channels[peer];
  auto& state = progress.peers[peer];
  bool moved = false;
  if (state.sends && !channel.is_sent()) moved = channel.advance();
  if (state.bytes && !state.has_header && channel.header() != nullptr) {
    check_header(call, peer, *state.bytes);
    channel.accept();
    state.has_header = moved = true;
  }
  const bool reads = state.bytes && !(state.has_header && channel.is_received());
  if (reads && state.has_header) moved |= sink.take(peer, channel);
  const bool is_done =
      (!state.sends || channel.is_sent()) && (!state.bytes || (state.has_header && channel.is_received()));
  if (!is_done) progress.waiting.push_back(peer);
  return moved;
}

void PeerExchange::check_header(const Call& call, int peer, size_t expected) const {
  const MessageHeader& header = *parts_->channels[peer]->header();
  const int mine = roster().numbers[roster().rank], theirs = roster().numbers[peer];
  if (header.session != parts_->session)
    throw PeerError(fmt::format("rank {}: what came from {} is not of this job: a stranger took its place", mine,
                                roster().names(std::array{peer})));
  const std::string name(header.name, strnlen(header.name, sizeof header.name));
  if (name != call.name || header.bytes != expected || header.number != exchanges_)
    throw std::logic_error(
        fmt::format("ranks issue different collectives: rank {} {} (message {} of {} bytes), rank {} {} "
                    "(message {} of {} bytes)",
                    mine, call.text(), exchanges_, expected, theirs, name, header.number, header.bytes));
}

// What is left is in the hands of gloo, which reads the tensors until it has sent them.
void PeerExchange::flush(const Call& call, const Progress& progress) {
  for (int peer = 0; peer < roster().world(); ++peer) {
    if (!progress.peers[peer].sends) continue;
    try {
      if (!parts_->channels[peer]->flush(call.timeout))
        fail(roster().waited(call, std::array{peer}), roster().numbers[peer]);
    } catch (const ChannelLost& lost) {
      if (is_aborted_) throw PeerError(roster().abandoned(call));
      fail_lost(call, peer, lost.what());
    }
  }
}

void PeerExchange::look_after_peers(const Call& call, Progress& progress) {
  if (is_aborted_) throw PeerError(roster().abandoned(call));
  // Set one round ago: what the peer had still written has been taken since, and was not all.
  if (progress.lost) fail_lost(call, *progress.lost, progress.how);
  const auto now = Clock::now();
  const auto late = now - progress.last_move - call.timeout;
  if (late >= kGrace || (late >= Clock::duration{} && is_behind(progress))) {
    const std::vector<int> missing = missing_peers(progress);
    fail(roster().waited(call, missing), roster().numbers[missing.front()]);
  }
  if (now - progress.last_look < kLook) return;
  progress.last_look = now;
  for (const int peer : progress.waiting) {
    try {
      if (parts_->channels[peer]->check_peer() == nullptr) continue;
      progress.how = "it closed its communicator";
    } catch (const ChannelLost& lost) {
      progress.how = lost.what();
    }
    progress.lost = peer;
    return;
  }
}

std::vector<int> PeerExchange::missing_peers(const Progress& progress) const {
  std::vector<int> silent;
  for (const int peer : progress.waiting)
    if (progress.peers[peer].bytes && !progress.peers[peer].has_header) silent.push_back(peer);
  return silent.empty() ? progress.waiting : silent;
}

bool PeerExchange::is_behind(const Progress& progress) const {
  for (int peer = 0; peer < roster().world(); ++peer) {
    if (!parts_->channels[peer] || std::ranges::count(progress.waiting, peer) > 0) continue;
    try {
      if (parts_->channels[peer]->header() != nullptr) return true;
    } catch (const ChannelLost&) {
      continue;  // it has nothing more to say here
    }
  }
  return false;
}

void PeerExchange::fail(const std::string& message, int culprit) {
  leave({.culprit = culprit});
  throw PeerError(message);
}

void PeerExchange::fail_lost(const Call& call, int peer, const std::string& how) {
  const int mine = roster().numbers[roster().rank];
  const int culprit = culprit_by(peer);
  const auto place = std::ranges::find(roster().numbers, culprit);
  // A peer that gave up leaves word of the rank it gave up for: that one is to blame, and not the messenger.
  if (culprit == mine) fail(roster().lost(call, std::array{peer}, "it waited for this rank in vain"), mine);
  if (place != roster().numbers.end())
    fail(roster().lost(call, std::array{static_cast<int>(place - roster().numbers.begin())},
                       "so says " + roster().names(std::array{peer})),
         culprit);
  fail(roster().lost(call, std::array{peer}, how), roster().numbers[peer]);
}

int PeerExchange::culprit_by(int peer) const {
  try {
    const Notice* const notice = parts_->channels[peer]->check_peer();
    return notice == nullptr ? -1 : notice->culprit;
  } catch (const ChannelLost&) {
    return -1;
  }
}

void PeerExchange::leave(const Notice& notice) noexcept {
  if (has_left_) return;
  has_left_ = true;
  for (const auto& channel : parts_->channels)
    if (channel) channel->leave(notice);
}

}  // namespace trainyard::comm
