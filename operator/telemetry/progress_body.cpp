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

std::optional<double> number_at(const Json& body, const char* key) {
  const auto found = body.find(key);
  if (found == body.end()) return std::nullopt;
  if (!found->is_number()) refuse(key, *found, "a number");
  return found->get<double>();  // finite: JSON has no other, and the parser refuses those out of range
}

std::string text_at(const Json& body, const char* key) {
  const auto found = body.find(key);
  if (found == body.end()) return "";
  if (!found->is_string()) refuse(key, *found, "a text");
  const auto text = found->get<std::string>();
  size_t end = std::min(text.size(), kMostErrorBytes);
  while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end);
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

api::ProgressPost parse_post(const std::string& body, TimePoint now) {
  const Json json = http::parse_body(body);
  if (!json.is_object()) throw http::BadBody("the body is " + described(json) + "; an object is expected");
  const auto step = integer_at(json, "step", 0);
  if (!step) throw http::BadBody("step is missing");
  api::ProgressPost post;
  post.progress = {.step = *step,
                   .total_steps = integer_at(json, "totalSteps", 0).value_or(0),
                   .loss = number_at(json, "loss"),
                   .tokens_per_second = number_at(json, "tokensPerSecond"),
                   .checkpoint_step = integer_at(json, "checkpointStep", -1).value_or(-1),
                   .silent_ranks = ranks_at(json, "silentRanks"),
                   .checkpoint_error = text_at(json, "checkpointError"),
                   .metrics_error = text_at(json, "metricsError"),
                   .config_changed = text_at(json, "configChanged"),
                   .updated = now,
                   .advanced = now};
  if (auto& speed = post.progress.tokens_per_second; speed && *speed < 0) speed.reset();
  post.generation = integer_at(json, "generation", 0);
  constexpr int64_t kMostRanks = 1 << 20;  // more cannot be: it is left unsaid then
  const int64_t ranks = integer_at(json, "worldSize", 0).value_or(0);
  post.world_size = ranks <= kMostRanks ? static_cast<int>(ranks) : 0;
  return post;
}

}  // namespace trainyard::telemetry
