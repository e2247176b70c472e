#include "checkpoint/agreement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "rendezvous/heartbeat.h"

namespace trainyard::checkpoint {
namespace {

using nlohmann::json;

// Beyond rank 0's own time-out, for what it does once all have come: reading headers, renaming, removing old folders.
constexpr std::chrono::seconds kAnswerGrace{60};

/// A system's message may hold bytes that are no UTF-8, in a path for example; it must get through all the same.
std::string text_of(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

json answer_of(const Agreement::Decide& decide, const Agreement::Said& said) {
  try {
    return decide(said);
  } catch (const std::exception& error) {  // the others wait for an answer whatever happens here
    return {{"error", error.what()}};
  }
}

std::vector<size_t> missing_in(const Agreement::Said& said) {
  std::vector<size_t> missing;
  for (size_t each = 0; each < said.size(); ++each)
    if (!said[each]) missing.push_back(each);
  return missing;
}

}  // namespace

Agreement::Agreement(rendezvous::Store& store, std::string name, int rank, int world, std::chrono::milliseconds timeout)
    : store_(world > 1 ? &store : nullptr), rank_(rank), world_(world), timeout_(timeout) {
  if (!store_) return;
  // A second object of one name must not read what the first left: each rank counts its own, all in the same order.
  const int64_t instance = store_->add(fmt::format("{}/opened/{}", name, rank), 1);
  prefix_ = fmt::format("{}/{}", name, instance);
}

json Agreement::round(const std::string& about, const json& say, const Decide& decide) {
  ++round_;
  own_ = say;
  if (!store_) return answer_of(decide, {say});
  store_->set(key(round_, std::to_string(rank_)), text_of(say));
  if (rank_ != 0) return hear(about);
  const Said said = gather();
  json answer = answer_of(decide, said);
  store_->set(key(round_, "answer"), text_of(answer));
  return answer;
}

json Agreement::hear(const std::string& about) {
  const auto patience = timeout_ + kAnswerGrace;
  const std::vector<std::string> itself{key(round_, "0")}, answer{key(round_, "answer")};
  try {
    // It waits for the others from when it is there itself.
    if (!wait_for(itself, timeout_).missing.empty())
      throw PeerError(fmt::format("it did not come within {}", human_duration(timeout_)));
    const rendezvous::Waited waited = wait_for(answer, patience);
    if (!waited.missing.empty()) throw PeerError(fmt::format("nothing within {}", human_duration(patience)));
    return json::parse(waited.values.at(0));
  } catch (const PeerError& error) {
    throw PeerError(fmt::format("{}: rank 0 did not answer: {}", about, error.what()));
  }
}

rendezvous::Waited Agreement::wait_for(std::span<const std::string> keys, std::chrono::milliseconds timeout) const {
  return rendezvous::wait_for_ranks(*store_, keys, timeout, [this] { return is_given_up(); });
}

json Agreement::round_of_all(const std::string& about, const json& say, const Decide& decide) {
  json answer = round(about, say, [&](const Said& said) -> json {
    const auto missing = missing_in(said);
    if (missing.empty()) return decide(said);
    return {{"missing", fmt::format("rank {} did not come within {}; see {}", fmt::join(missing, ", "),
                                    human_duration(timeout_), missing.size() == 1 ? "its log" : "their logs")}};
  });
  if (const auto missing = answer.find("missing"); missing != answer.end())
    throw PeerError(fmt::format("{}: {}", about, missing->get<std::string>()));
  return answer;
}

Agreement::Said Agreement::gather() {
  std::vector<std::string> keys;
  for (int each = 0; each < world_; ++each) keys.push_back(key(round_, std::to_string(each)));
  const rendezvous::Waited waited = wait_for(keys, timeout_);
  if (waited.missing.empty())
    forget(round_ - 1);  // whoever spoke in this round has read all it wanted of the one before
  Said said;
  for (const std::string& each : keys) {
    const auto text = store_->get(each);
    said.push_back(text ? std::optional(json::parse(*text)) : std::nullopt);
  }
  return said;
}

std::vector<json> Agreement::said_by(std::span<const int> ranks) {
  std::vector<json> said;
  for (const int each : ranks) {
    const auto text = each == rank_ ? std::optional(text_of(own_)) : store_->get(key(round_, std::to_string(each)));
    if (!text) throw PeerError(fmt::format("rank {}: nothing heard of it in this round", each));
    said.push_back(json::parse(*text));
  }
  return said;
}

std::optional<std::string> Agreement::first_error(const Said& said) {
  for (size_t each = 0; each < said.size(); ++each)
    if (said[each] && said[each]->contains("error"))
      return (said.size() > 1 ? fmt::format("rank {}: ", each) : "") + said[each]->at("error").get<std::string>();
  const auto missing = missing_in(said);
  if (missing.empty()) return std::nullopt;
  return fmt::format("rank {} did not come within the time-out", fmt::join(missing, ", "));
}

std::string Agreement::key(int64_t round, const std::string& who) const {
  return fmt::format("{}/{}/{}", prefix_, round, who);
}

void Agreement::forget(int64_t round) {
  if (round <= 0) return;
  for (int each = 0; each < world_; ++each) store_->erase(key(round, std::to_string(each)));
  store_->erase(key(round, "answer"));
}

}  // namespace trainyard::checkpoint
