#include "rendezvous/heartbeat.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "rendezvous/last_words.h"

namespace trainyard::rendezvous {
namespace {

constexpr const char* kSilent = "silent";
constexpr const char* kLeft = "left";

std::string beat_key(int rank) {
  return fmt::format("beat/{}", rank);
}

std::string to_json(const std::vector<SilentRank>& silent) {
  auto list = nlohmann::json::array();
  for (const SilentRank& one : silent) {
    list.push_back(
        {{"rank", one.rank}, {"host", one.host}, {"silent_ms", one.silent_for.count()}, {"gone", one.is_gone}});
  }
  return list.dump();
}

}  // namespace

std::string member_key(int rank) {
  return fmt::format("join/rank/{}", rank);
}

void BeatCount::observe(int rank, const std::string& beat, bool is_connected, TimePoint now) {
  Heard& heard = heard_.at(static_cast<size_t>(rank));
  if (beat != heard.beat) heard.at = now;
  heard.beat = beat;
  heard.is_connected = is_connected;
}

std::vector<SilentRank> BeatCount::silent(std::chrono::milliseconds after, TimePoint now) const {
  std::vector<SilentRank> all;
  for (size_t rank = 0; rank < heard_.size(); ++rank) {
    const Heard& heard = heard_[rank];
    const auto silent_for = std::chrono::duration_cast<std::chrono::milliseconds>(now - heard.at);
    if (heard.beat == kLeft || (heard.is_connected && silent_for < after)) continue;
    all.push_back({static_cast<int>(rank), hosts_[rank], silent_for, !heard.is_connected});
  }
  return all;
}

Heartbeat::Heartbeat(Store& store, int rank, std::vector<std::string> hosts, const Settings& settings)
    : store_(store), rank_(rank), hosts_(std::move(hosts)), settings_(settings) {
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void Heartbeat::leave() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
  store_.set(beat_key(rank_), kLeft);
}

void Heartbeat::run(const std::stop_token& stop) {
  BeatCount count(hosts_, std::chrono::steady_clock::now());
  try {
    for (int64_t beat = 1; !stop.stop_requested(); ++beat) {
      store_.set(beat_key(rank_), fmt::format("{}", beat));
      if (rank_ == 0) count_others(count);
      const MutexLock lock(mutex_);
      due_.wait_for(mutex_, stop, settings_.interval, [] { return false; });
    }
  } catch (const PeerError&) {
    // Every later call to the store throws it again, in the thread that can act on it.
  }
}

void Heartbeat::count_others(BeatCount& count) {
  const auto now = std::chrono::steady_clock::now();
  for (int rank = 0; rank < static_cast<int>(hosts_.size()); ++rank) {
    const auto beat = store_.get(beat_key(rank));
    count.observe(rank, beat.value_or(""), store_.get(member_key(rank)).has_value(), now);
  }
  const std::vector<SilentRank> silent = count.silent(settings_.silent_after, now);
  store_.set(kSilent, to_json(silent));
  std::string names;  // without the seconds, which change each time
  for (const SilentRank& one : silent) names += fmt::format("{}{},", one.rank, one.is_gone);
  if (names != last_list_ && !silent.empty()) spdlog::warn("rendezvous: {}", describe(silent));
  last_list_ = names;
}

std::vector<SilentRank> silent_in(Store& store) {
  const auto text = store.get(kSilent);
  std::vector<SilentRank> silent;
  for (const auto& one : nlohmann::json::parse(text.value_or("[]"))) {
    silent.push_back({one.at("rank"), one.at("host"), std::chrono::milliseconds(one.at("silent_ms").get<int64_t>()),
                      one.at("gone")});
  }
  if (const auto words = last_words_in(store))
    if (std::ranges::find(silent, words->rank, &SilentRank::rank) == silent.end())
      silent.push_back({.rank = words->rank, .host = words->host, .is_gone = true});
  return silent;
}

Waited wait_for_ranks(Store& store, std::span<const std::string> keys, std::chrono::milliseconds timeout,
                      const std::function<bool()>& given_up) {
  using std::chrono::milliseconds;
  constexpr milliseconds kLook = std::chrono::seconds(1);
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    if (given_up && given_up()) throw PeerError("given up, as a rank is lost");
    const auto left =
        std::max(std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now()), milliseconds(0));
    Waited waited = store.try_wait(keys, std::min(left, kLook));
    if (waited.missing.empty()) return waited;
    std::vector<SilentRank> gone = silent_in(store);
    std::erase_if(gone, [](const SilentRank& one) { return !one.is_gone; });
    if (!gone.empty()) throw PeerError(describe(gone));
    if (left <= kLook) return waited;
  }
}

std::string describe(const std::vector<SilentRank>& silent) {
  std::string text;
  for (const SilentRank& one : silent) {
    const auto seconds = std::chrono::round<std::chrono::seconds>(one.silent_for);
    text += fmt::format("{}rank {} ({}) {}", text.empty() ? "" : ", ", one.rank, one.host,
                        one.is_gone ? "gone" : "silent for " + human_duration(seconds));
  }
  return text;
}

}  // namespace trainyard::rendezvous
