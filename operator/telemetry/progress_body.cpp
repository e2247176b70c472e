#include "telemetry/progress_body.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "http/json_body.h"

namespace trainyard::telemetry {
namespace {

/// "12", "null", "of type string": nothing longer of what anybody may have sent.
std::string described(const Json& value) {
  if (value.is_number() || value.is_boolean()) return dump(value);
  return value.is_null() ? "null" : fmt::format("of type {}", value.type_name());
}

[[noreturn]] void refuse(const char* key, const Json& value, const char* allowed) {
  throw http::BadBody(fmt::format("{} is {}; {} is expected", key, described(value), allowed));
}

/// None for 1.0, texts and what is out of range.
std::optional<int64_t> integer_of(const Json& value) {
  if (value.is_number_unsigned() && value.get<uint64_t>() > std::numeric_limits<int64_t>::max()) return std::nullopt;
  if (value.is_number_integer()) return value.get<int64_t>();
  return std::nullopt;
}

std::optional<int64_t> integer_at(const Json& body, const char* key, int64_t least) {
  const auto found = body.find(key);
  if (found == body.end()) return std::nullopt;
  const auto integer = integer_of(*found);
  if (!integer || *integer < least) refuse(key, *found, least < 0 ? "an integer from -1 on" : "an integer from 0 on");
  return integer;
}

double number_at(const Json& body, const char* key) {
  const auto found = body.find(key);
  if (found == body.end()) return 0;
  if (!found->is_number()) refuse(key, *found, "a number");
  return found->get<double>();  // finite: JSON has no other, and the parser refuses those out of range
}

std::vector<int> ranks_at(const Json& body, const char* key) {
  const auto found = body.find(key);
  if (found == body.end()) return {};
  if (!found->is_array()) refuse(key, *found, "a list of ranks");
  if (found->size() > kMostSilentRanks)
    throw http::BadBody(fmt::format("{} has {} ranks; {} at most are taken", key, found->size(), kMostSilentRanks));
  std::vector<int> ranks;
  for (const Json& value : *found) {
    const auto rank = integer_of(value);
    if (!rank || *rank < 0 || *rank > std::numeric_limits<int>::max()) refuse(key, value, "a list of ranks");
    ranks.push_back(static_cast<int>(*rank));
  }
  return ranks;
}

}  // namespace

Post parse_post(const std::string& body, TimePoint now) {
  const Json json = http::parse_body(body);
  if (!json.is_object()) throw http::BadBody("the body is " + described(json) + "; an object is expected");
  const auto step = integer_at(json, "step", 0);
  if (!step) throw http::BadBody("step is missing");
  Post post;
  post.progress = {.step = *step,
                   .total_steps = integer_at(json, "totalSteps", 0).value_or(0),
                   .loss = number_at(json, "loss"),
                   .tokens_per_second = std::max(number_at(json, "tokensPerSecond"), 0.0),
                   .checkpoint_step = integer_at(json, "checkpointStep", -1).value_or(-1),
                   .silent_ranks = ranks_at(json, "silentRanks"),
                   .updated = now,
                   .advanced = now};
  post.generation = integer_at(json, "generation", 0);
  return post;
}

}  // namespace trainyard::telemetry
