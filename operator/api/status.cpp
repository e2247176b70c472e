#include <cmath>
#include <iterator>
#include <sstream>

#include "api/field.h"
#include "api/job.h"
#include "base/text.h"

// The one place that knows how a status is written: each struct has its reader and its writer side by side.
namespace trainyard::api {
namespace {

constexpr ReplicaType kReplicaTypes[] = {ReplicaType::Master, ReplicaType::Worker};

const Json& at(const Json& object, const char* key) {
  static const Json absent;
  if (!object.is_object()) return absent;
  const auto found = object.find(key);
  return found == object.end() ? absent : *found;
}

template <typename T>
T number_of(const Json& object, const char* key, T fallback = 0) {
  const auto number = whole_number_of(at(object, key));
  return number && std::in_range<T>(*number) ? static_cast<T>(*number) : fallback;
}

std::optional<TimePoint> time_at(const Json& object, const char* pointer) {
  return parse_time(text_at(object, pointer));
}

std::vector<std::string> text_list(const Json& object, const char* key) {
  std::vector<std::string> texts;
  for (const Json& entry : at(object, key))
    if (entry.is_string()) texts.push_back(entry);
  return texts;
}

void put(Json& object, const char* key, const std::string& text) {
  if (!text.empty()) object[key] = text;
}

void put(Json& object, const char* key, const std::optional<TimePoint>& time) {
  if (time && *time != TimePoint()) object[key] = format_time(*time);
}

void put_unless(Json& object, const char* key, int64_t number, int64_t unless) {
  if (number != unless) object[key] = number;
}

/// JSON has no NaN and no infinity: a loss that is one is left out.
void put(Json& object, const char* key, const std::optional<double>& number) {
  if (number && std::isfinite(*number)) object[key] = *number;
}

std::optional<double> double_at(const Json& object, const char* key) {
  const Json& found = at(object, key);
  return found.is_number() ? std::optional(found.get<double>()) : std::nullopt;
}

Condition parse_condition(const Json& object) {
  return {.type = text_at(object, "/type"),
          .status = text_at(object, "/status") == "True",
          .reason = text_at(object, "/reason"),
          .message = text_at(object, "/message"),
          .updated = time_at(object, "/lastUpdateTime").value_or(TimePoint()),
          .transitioned = time_at(object, "/lastTransitionTime").value_or(TimePoint())};
}

Json condition_json(const Condition& condition) {
  Json object{{"type", condition.type}, {"status", condition.status ? "True" : "False"}};
  put(object, "reason", condition.reason);
  put(object, "message", condition.message);
  put(object, "lastUpdateTime", condition.updated);
  put(object, "lastTransitionTime", condition.transitioned);
  return object;
}

ReplicaStatus parse_replica_status(const Json& object) {
  return {.active = number_of<int>(object, "active"),
          .succeeded = number_of<int>(object, "succeeded"),
          .failed = number_of<int>(object, "failed"),
          .selector = text_at(object, "/selector")};
}

Json replica_json(const ReplicaStatus& replica) {
  Json object = Json::object();
  put_unless(object, "active", replica.active, 0);
  put_unless(object, "succeeded", replica.succeeded, 0);
  put_unless(object, "failed", replica.failed, 0);
  put(object, "selector", replica.selector);
  return object;
}

std::optional<RestartCause> parse_cause(const Json& object) {
  if (!object.is_object()) return std::nullopt;
  RestartCause cause{.pod = text_at(object, "/pod"),
                     .node = text_at(object, "/node"),
                     .reason = text_at(object, "/reason"),
                     .message = text_at(object, "/message"),
                     .time = time_at(object, "/time").value_or(TimePoint()),
                     .container = text_at(object, "/container")};
  if (at(object, "exitCode").is_number()) cause.exit_code = number_of<int>(object, "exitCode");
  return cause;
}

Json cause_json(const RestartCause& cause) {
  Json object = Json::object();
  put(object, "pod", cause.pod);
  put(object, "node", cause.node);
  put(object, "container", cause.container);
  if (cause.exit_code) object["exitCode"] = *cause.exit_code;
  put(object, "reason", cause.reason);
  put(object, "message", cause.message);
  put(object, "time", cause.time);
  return object;
}

std::vector<RestartCause> parse_causes(const Json& list) {
  std::vector<RestartCause> causes;
  for (const Json& entry : list)
    if (auto cause = parse_cause(entry)) causes.push_back(std::move(*cause));
  return causes;
}

/// "0-2,7": of a thousand workers that end one after the other not much is written.
std::string text_of_ranges(const std::set<int>& numbers) {
  std::string text;
  for (auto first = numbers.begin(); first != numbers.end();) {
    auto last = first;
    while (std::next(last) != numbers.end() && *std::next(last) == *last + 1) ++last;
    if (!text.empty()) text += ",";
    text += std::to_string(*first);
    if (last != first) text += "-" + std::to_string(*last);
    first = std::next(last);
  }
  return text;
}

/// What is not written so counts as nothing.
std::set<int> parse_ranges(const std::string& text) {
  std::set<int> numbers;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const size_t dash = part.find('-');
    const auto first = parse_int(part.substr(0, dash));
    const auto last = dash == std::string::npos ? first : parse_int(part.substr(dash + 1));
    if (!first || !last || *first < 0 || *last > 2 * kMostReplicas) continue;
    for (int64_t number = *first; number <= *last; ++number) numbers.insert(static_cast<int>(number));
  }
  return numbers;
}

Restarts parse_restarts(const Json& object) {
  return {.count = number_of<int>(object, "count"),
          .forgiven = number_of<int>(object, "forgiven"),
          .disruptions = number_of<int>(object, "disruptions"),
          .generation = number_of<int64_t>(object, "generation", 1),
          .last_cause = parse_cause(at(object, "lastCause")),
          .causes = parse_causes(at(object, "causes")),
          .streak = number_of<int>(object, "streak"),
          .not_before = time_at(object, "/notBefore"),
          .checkpoint_step = number_of<int64_t>(object, "checkpointStep", -1),
          .formed = number_of<int>(object, "formed"),
          .finished = parse_ranges(text_at(object, "/finished")),
          .running_since = time_at(object, "/runningSince"),
          .avoid_nodes = text_list(object, "avoidNodes"),
          .restarting_pods = text_list(object, "restartingPods")};
}

/// Empty where nothing has happened yet; else with the counts that people look at, zeros too.
Json restarts_json(const Restarts& restarts) {
  Json object = Json::object();
  if (restarts.last_cause) object["lastCause"] = cause_json(*restarts.last_cause);
  for (const RestartCause& cause : restarts.causes) object["causes"].push_back(cause_json(cause));
  put_unless(object, "forgiven", restarts.forgiven, 0);
  put_unless(object, "streak", restarts.streak, 0);
  put(object, "notBefore", restarts.not_before);
  put_unless(object, "checkpointStep", restarts.checkpoint_step, -1);
  put_unless(object, "formed", restarts.formed, 0);
  put(object, "finished", text_of_ranges(restarts.finished));
  put(object, "runningSince", restarts.running_since);
  if (!restarts.avoid_nodes.empty()) object["avoidNodes"] = restarts.avoid_nodes;
  if (!restarts.restarting_pods.empty()) object["restartingPods"] = restarts.restarting_pods;
  if (object.empty() && restarts.count == 0 && restarts.disruptions == 0 && restarts.generation == 1) return object;
  object.update(
      {{"count", restarts.count}, {"disruptions", restarts.disruptions}, {"generation", restarts.generation}});
  return object;
}

std::optional<Progress> parse_progress(const Json& object) {
  if (!object.is_object()) return std::nullopt;
  Progress progress{.step = number_of<int64_t>(object, "step"),
                    .total_steps = number_of<int64_t>(object, "totalSteps"),
                    .loss = double_at(object, "loss"),
                    .tokens_per_second = double_at(object, "tokensPerSecond"),
                    .checkpoint_step = number_of<int64_t>(object, "checkpointStep", -1),
                    .checkpoint_error = text_at(object, "/checkpointError"),
                    .metrics_error = text_at(object, "/metricsError"),
                    .config_changed = text_at(object, "/configChanged"),
                    .eta = text_at(object, "/eta"),
                    .updated = time_at(object, "/updateTime").value_or(TimePoint()),
                    .advanced = time_at(object, "/advanceTime").value_or(TimePoint())};
  for (const Json& rank : at(object, "silentRanks"))
    if (const auto number = whole_number_of(rank); number && std::in_range<int>(*number))
      progress.silent_ranks.push_back(static_cast<int>(*number));
  return progress;
}

Json progress_json(const Progress& progress) {
  Json object{{"step", progress.step}};
  put_unless(object, "totalSteps", progress.total_steps, 0);
  put(object, "loss", progress.loss);
  put(object, "tokensPerSecond", progress.tokens_per_second);
  put_unless(object, "checkpointStep", progress.checkpoint_step, -1);
  put(object, "checkpointError", progress.checkpoint_error);
  put(object, "metricsError", progress.metrics_error);
  put(object, "configChanged", progress.config_changed);
  if (!progress.silent_ranks.empty()) object["silentRanks"] = progress.silent_ranks;
  put(object, "eta", progress.eta);
  put(object, "updateTime", progress.updated);
  put(object, "advanceTime", progress.advanced);
  return object;
}

}  // namespace

std::optional<Progress> progress_of_text(const std::string& text) {
  const auto object = parse_json(text);
  return object && object->is_object() && object->contains("step") ? parse_progress(*object) : std::nullopt;
}

JobStatus parse_status(const Json& object) {
  const Json& written = at(object, "status");
  JobStatus status;
  for (const Json& condition : at(written, "conditions"))
    if (!text_at(condition, "/type").empty()) status.conditions.push_back(parse_condition(condition));
  const Json& replicas = at(written, "replicaStatuses");
  for (const ReplicaType type : kReplicaTypes)
    if (const Json& replica = at(replicas, name_of(type)); replica.is_object())
      status.replicas[type] = parse_replica_status(replica);
  status.ready = text_at(written, "/ready");
  status.start_time = time_at(written, "/startTime");
  status.completion_time = time_at(written, "/completionTime");
  status.last_reconcile_time = time_at(written, "/lastReconcileTime");
  status.restarts = parse_restarts(at(written, "restarts"));
  status.progress = parse_progress(at(written, "progress"));
  return status;
}

Json to_json(const JobStatus& status) {
  Json object = Json::object();
  for (const Condition& condition : status.conditions) object["conditions"].push_back(condition_json(condition));
  for (const auto& [type, replica] : status.replicas) object["replicaStatuses"][name_of(type)] = replica_json(replica);
  put(object, "ready", status.ready);
  put(object, "startTime", status.start_time);
  put(object, "completionTime", status.completion_time);
  put(object, "lastReconcileTime", status.last_reconcile_time);
  if (Json restarts = restarts_json(status.restarts); !restarts.empty()) object["restarts"] = std::move(restarts);
  if (status.progress) object["progress"] = progress_json(*status.progress);
  return object;
}

}  // namespace trainyard::api
