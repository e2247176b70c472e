#include "controller/reconciler.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

namespace trainyard::controller {
namespace {

using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock;

constexpr int kKeysATurn = 32;      // then the loop reads its sockets again
constexpr auto kLongestRest = 60s;  // a calendar that jumps is noticed after as long
// A job of ten thousand pods takes milliseconds to decide on, and each of its pods' changes asks for it. It rests so
// many times as long as that took, so that one job cannot take the thread for itself.
constexpr int kRestPerWork = 8;
constexpr auto kSmallWork = 1ms;

}  // namespace

Reconciler::Reconciler(kube::Client& client, kube::EventRecorder& events, Counters& counters, const OperatorKey& key,
                       Settings settings, Hooks hooks)
    : client_(client),
      events_(events),
      counters_(counters),
      key_(key),
      settings_(std::move(settings)),
      hooks_(std::move(hooks)),
      cluster_(
          client, {settings_.ns, settings_.decisions.gang_scheduler, settings_.decisions.watches_nodes},
          [this](const auto& before, const auto& after) { job_changed(before, after); },
          [this](const std::string& changed) { add(changed); }, hooks_.on_trouble) {}

void Reconciler::start() {
  cluster_.start();
}

void Reconciler::lead() {
  is_leading_ = true;
  listen_anew();
  cluster_.for_each_job([this](const WatchedJob& job) { add(key_of(job)); });
}

void Reconciler::yield() {
  is_leading_ = false;
}

void Reconciler::job_changed(const std::shared_ptr<const WatchedJob>& before,
                             const std::shared_ptr<const WatchedJob>& after) {
  const std::string key = key_of(after ? *after : *before);
  hooks_.on_job(before.get(), after.get());
  if (!after) {
    if (is_leading_) counters_.count_deleted(before->ns);
    memories_.erase(key);
    queue_.forget(key);
    return;
  }
  add(key);
}

void Reconciler::add(const std::string& key) {
  queue_.add(key, Steady::now());
  schedule_pump();
}

/// It happens in a later turn, as what is known changes while the answer or event at hand is taken in.
void Reconciler::schedule_pump() {
  if (will_pump_) return;
  will_pump_ = true;
  client_.loop().post([this] {
    will_pump_ = false;
    pump();
  });
}

void Reconciler::pump() {
  if (!is_leading_) return;  // lead() asks for every job
  if (!cluster_.is_current()) {
    client_.loop().cancel(timer_);
    timer_ = client_.loop().after(50ms, [this] { schedule_pump(); });
    return;
  }
  for (int i = 0; i < kKeysATurn; ++i) {
    const auto key = queue_.take(Steady::now());
    if (!key) break;
    reconcile(*key);
  }
  const auto next = queue_.next_due();
  if (!next) return;
  if (*next <= Steady::now()) return schedule_pump();
  client_.loop().cancel(timer_);
  timer_ = client_.loop().after(*next - Steady::now(), [this] { schedule_pump(); });
}

std::shared_ptr<Memory> Reconciler::memory_of(const std::string& key, const std::string& uid) {
  auto& memory = memories_[key];
  if (!memory || memory->uid != uid) {
    memory = std::make_shared<Memory>();
    memory->uid = uid;
  }
  return memory;
}

void Reconciler::reconcile(const std::string& key) {
  const auto began = Steady::now();
  const std::shared_ptr<const WatchedJob> job = cluster_.job(key);
  if (!job) {
    queue_.done(key, began);
    return queue_.forget(key);
  }
  const std::shared_ptr<Memory> memory = memory_of(key, job->uid);
  if (!job->defect.empty()) {
    if (memory->remember_said(job->defect)) spdlog::error("{}: {}", key, job->defect);
    return queue_.done(key, began);
  }
  decide::Observed seen = cluster_.observe(*job);
  seen.foreign_pods = memory->foreign_pods;
  seen.foreign_services = memory->foreign_services;
  seen.foreign_kinds = memory->foreign_kinds;
  seen.refused = memory->refused;
  seen.kubelet_warnings = memory->kubelet_warnings;
  seen.post = memory->post;
  seen.listens_since = listens_since_;
  seen.token_is_there = memory->token_is_there;
  seen.network_policy_is_there = memory->network_policy_is_there;
  const TimePoint now = std::chrono::system_clock::now();
  decide::Plan plan = decide::decide(seen, settings_.decisions, now);
  if (plan.look_again) {
    const auto wait = std::clamp<Steady::duration>(*plan.look_again - now, 1ms, kLongestRest);
    queue_.add_at(key, began + wait);
  }
  if (!memory->foreign_pods.empty() || !memory->foreign_services.empty())
    queue_.add_at(key, began + foreign_interval(*memory));
  const auto decided_in = Steady::now() - began;
  const auto execution = std::make_shared<Execution>(
      Hands{client_, cluster_, events_, counters_, key_, settings_.decisions.gang_scheduler, hooks_.on_trouble,
            later()},
      job, memory, std::move(plan),
      [this, key, memory, decided_in](Outcome outcome) { finish(key, memory, outcome, decided_in); });
  execution->start();
}

/// It posts to the loop for as long as the reconciler lives. The client ends later, and drops the calls that it still
/// has then.
Stage::Later Reconciler::later() const {
  return alive_.guard([this](Stage::Task task) { client_.loop().post(alive_.guard(std::move(task))); });
}

void Reconciler::finish(const std::string& key, const std::shared_ptr<Memory>& memory, Outcome outcome,
                        Steady::duration decided_in) {
  memory->failures = outcome == Outcome::Failed ? memory->failures + 1 : 0;
  counters_.observe_reconcile(std::chrono::duration<double>(decided_in).count(), outcome != Outcome::Failed);
  auto rest = decided_in > kSmallWork ? kRestPerWork * decided_in : Steady::duration(0);
  rest = std::max<Steady::duration>(rest, rest_after(memory->failures));
  const auto now = Steady::now();
  queue_.done(key, now + rest);
  if (!cluster_.job(key)) {
    queue_.forget(key);
  } else if (outcome != Outcome::Done) {
    queue_.add(key, now);
  }
  schedule_pump();
}

void Reconciler::take_post(const std::string& key, const api::ProgressPost& post) {
  const auto job = cluster_.job(key);
  if (!job) return;
  memory_of(key, job->uid)->post = post;
  add(key);
}

}  // namespace trainyard::controller
