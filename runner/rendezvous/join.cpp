#include "rendezvous/join.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"

namespace trainyard::rendezvous {
namespace {

using std::chrono::milliseconds;
using Json = nlohmann::json;

constexpr const char* kVerdict = "join/verdict";
constexpr const char* kTerms = "join/terms";
constexpr milliseconds kSlice{500};  // how late SIGTERM may be heard

std::vector<std::string> member_keys(int world) {
  std::vector<std::string> keys;
  for (int rank = 0; rank < world; ++rank) keys.push_back(member_key(rank));
  return keys;
}

/// It leaves config_text out, of which a world of hundreds would make a roster that no store takes.
Json to_json(const Member& member) {
  return {{"rank", member.rank},       {"world", member.world},   {"host", member.host}, {"process", member.process},
          {"address", member.address}, {"config", member.config}, {"life", member.life}};
}

Json terms_of(const Member& member) {
  Json json = to_json(member);
  json["config_text"] = member.config_text;
  return json;
}

Member member_of(const Json& json) {
  return {json.at("rank"),
          json.at("world"),
          json.at("host"),
          json.at("process"),
          json.at("address"),
          json.at("config"),
          json.value("config_text", ""),
          json.at("life")};
}

/// Names come from outside; what is no UTF-8 in them must not stop a rank from joining.
std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string who(const Member& member) {
  return fmt::format("rank {} ({}, process {})", member.rank, member.host, member.process);
}

/// What `text` says, a line a setting, that `other` does not: on one line, and no more than a reader takes in.
std::string lines_of_its_own(const std::string& text, const std::string& other) {
  constexpr size_t kNamed = 4;
  const std::vector<std::string> others = split(other, '\n');
  std::vector<std::string> own;
  for (std::string& line : split(text, '\n'))
    if (std::ranges::find(others, line) == others.end()) own.push_back(std::move(line));
  const size_t more = own.size() - std::min(own.size(), kNamed);
  own.resize(own.size() - more);
  return fmt::format("{}{}", fmt::join(own, ", "), more > 0 ? fmt::format(" and {} more", more) : "");
}

/// The verdict as it stands, after this rank proposed one.
Json propose(Store& store, const Json& verdict) {
  return Json::parse(store.compare_and_set(kVerdict, std::nullopt, text_of(verdict)));
}

[[noreturn]] void fail(Store& store, const char* kind, const std::string& text) {
  const Json verdict = propose(store, {{kind, text}});
  if (verdict.contains("input_error")) throw InputError(verdict.at("input_error"));
  if (verdict.contains("peer_error")) throw PeerError(verdict.at("peer_error"));
  throw PeerError(text);  // the others have met without this rank
}

/// A number belongs to the process that claimed it, while that lives.
void claim_number(Store& store, const Member& self) {
  const Member holder = member_of(Json::parse(store.claim(member_key(self.rank), text_of(to_json(self)))));
  if (holder.life != self.life) {
    fail(store, "input_error",
         fmt::format("two ranks have the number {}: {} and {}; each needs a RANK of its own", self.rank, who(holder),
                     who(self)));
  }
}

/// The first to come sets the terms, and all others must have the same.
void compare_terms(Store& store, const Member& self) {
  const Member first = member_of(Json::parse(store.compare_and_set(kTerms, std::nullopt, text_of(terms_of(self)))));
  if (first.world != self.world) {
    fail(store, "input_error",
         fmt::format("WORLD_SIZE differs between ranks: {} on {}, but {} on {}", first.world, who(first), self.world,
                     who(self)));
  }
  if (first.config != self.config) {
    fail(store, "input_error",
         fmt::format("the configuration differs between ranks: {} on {}, but {} on {}; every rank must get the same",
                     lines_of_its_own(first.config_text, self.config_text), who(first),
                     lines_of_its_own(self.config_text, first.config_text), who(self)));
  }
}

Json roster_of(const std::vector<std::string>& members) {
  auto roster = Json::array();
  for (const std::string& member : members) roster.push_back(Json::parse(member));
  return {{"members", roster}};
}

[[noreturn]] void name_missing(Store& store, const Member& self, milliseconds timeout) {
  std::string names;
  int count = 0;
  constexpr int kNamed = 16;
  for (int rank = 0; rank < self.world; ++rank) {
    if (store.get(member_key(rank))) continue;
    if (++count <= kNamed) names += fmt::format("{}{}", count == 1 ? "" : ", ", rank);
  }
  if (count > kNamed) names += fmt::format(" and {} more", count - kNamed);
  fail(store, "peer_error",
       fmt::format("{} {} did not come within {}; see {}, or raise rendezvous.timeout", count == 1 ? "rank" : "ranks",
                   names, human_duration(timeout), count == 1 ? "its log" : "their logs"));
}

}  // namespace

std::vector<Member> meet(Store& store, const Member& self, Patience patience,
                         const std::function<bool()>& interrupted) {
  const auto deadline = std::chrono::steady_clock::now() + patience.left;
  // The terms first: once all numbers are claimed, all have met.
  compare_terms(store, self);
  claim_number(store, self);
  // Whoever registers last sees all, as the store takes one request after the other.
  Waited all = store.try_wait(member_keys(self.world), milliseconds(0));
  if (all.missing.empty()) propose(store, roster_of(all.values));
  const std::vector<std::string> verdict_key{kVerdict};
  Waited verdict;
  do {
    if (interrupted && interrupted()) throw TerminatedError("asked to stop while waiting for the other ranks");
    const auto left = std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left <= milliseconds(0)) name_missing(store, self, patience.timeout);
    verdict = store.try_wait(verdict_key, std::min(left, kSlice));
  } while (!verdict.missing.empty());
  const Json found = Json::parse(verdict.values.front());
  if (found.contains("input_error")) throw InputError(found.at("input_error"));
  if (found.contains("peer_error")) throw PeerError(found.at("peer_error"));
  std::vector<Member> members;
  for (const Json& member : found.at("members")) members.push_back(member_of(member));
  const Member& in_my_place = members.at(static_cast<size_t>(self.rank));
  if (in_my_place.life == self.life) return members;
  // This container was started again in place; the others hold connections to the process that is no more.
  throw PeerError(
      fmt::format("{} joined this job before and is gone; the whole job must start anew", who(in_my_place)));
}

}  // namespace trainyard::rendezvous
