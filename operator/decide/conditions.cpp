#include "decide/conditions.h"

#include <algorithm>

namespace trainyard::decide {
namespace {

api::Condition* find_mutable(api::JobStatus& status, const std::string& type) {
  const auto found = std::ranges::find(status.conditions, type, &api::Condition::type);
  return found == status.conditions.end() ? nullptr : &*found;
}

void drop(api::JobStatus& status, const std::string& type) {
  std::erase_if(status.conditions, [&](const api::Condition& one) { return one.type == type; });
}

void end_running(api::JobStatus& status, TimePoint now) {
  api::Condition* const running = find_mutable(status, condition::kRunning);
  if (!running || !running->status) return;
  running->status = false;
  running->updated = running->transitioned = now;
}

}  // namespace

const api::Condition* find_condition(const api::JobStatus& status, const std::string& type) {
  const auto found = std::ranges::find(status.conditions, type, &api::Condition::type);
  return found == status.conditions.end() ? nullptr : &*found;
}

bool is_true(const api::JobStatus& status, const std::string& type) {
  const api::Condition* const found = find_condition(status, type);
  return found && found->status;
}

bool is_finished(const api::JobStatus& status) {
  return is_true(status, condition::kSucceeded) || is_true(status, condition::kFailed);
}

void set_condition(api::JobStatus& status, const std::string& type, bool value, const std::string& reason,
                   const std::string& message, TimePoint now) {
  if (is_true(status, condition::kFailed)) return;
  const api::Condition* const old = find_condition(status, type);
  if (old && old->status == value && old->reason == reason) return;
  const TimePoint transitioned = old && old->status == value ? old->transitioned : now;
  if (type == condition::kRunning) drop(status, condition::kRestarting);
  if (type == condition::kRestarting) drop(status, condition::kRunning);
  if (type == condition::kSucceeded || type == condition::kFailed) end_running(status, now);
  drop(status, type);
  status.conditions.push_back({type, value, reason, message, now, transitioned});
}

void set_trouble(api::JobStatus& status, const std::string& reason, const std::string& message, TimePoint now) {
  const api::Condition* const old = find_condition(status, condition::kTrouble);
  if (old && old->reason == reason && old->message == message) return;
  const TimePoint since = old && old->reason == reason ? old->transitioned : now;
  drop(status, condition::kTrouble);
  if (message.empty()) return;
  status.conditions.insert(status.conditions.begin(), {condition::kTrouble, true, reason, message, now, since});
}

}  // namespace trainyard::decide
