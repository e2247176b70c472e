#include "controller/execution.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "api/kubelet_events.h"

namespace trainyard::controller {
namespace {

using decide::Kind;
using kube::ErrorKind;

/// The reference tells of pods, services and PodGroups; the others are our own means.
const char* event_name_of(Kind kind) {
  switch (kind) {
    case Kind::Pod:
    case Kind::Job:  // a job that is over its time to live: the reference words it so
      return "Pod";
    case Kind::Service:
      return "Service";
    case Kind::PodGroup:
      return "PodGroup";
    case Kind::Secret:
    case Kind::NetworkPolicy:
    case Kind::Autoscaler:
      break;
  }
  return nullptr;
}

std::string lower_case_kind(Kind kind) {
  return kind == Kind::Service ? "service" : kind == Kind::PodGroup ? "PodGroup" : "pod";
}

bool is_nameable(Kind kind) {
  return kind == Kind::Pod || kind == Kind::Service;
}

constexpr std::chrono::seconds kInquiryInterval{10};  // a job's

}  // namespace

Execution::Execution(Hands hands, std::shared_ptr<const WatchedJob> job, std::shared_ptr<Memory> memory,
                     decide::Plan plan, OnDone done)
    : hands_(hands), job_(std::move(job)), memory_(std::move(memory)), plan_(std::move(plan)), done_(std::move(done)) {}

void Execution::start() {
  if (plan_.status) return write_status();
  prepare();
}

Stage Execution::begin(void (Execution::*next)()) {
  return {hands_.later, [self = shared_from_this(), next](Stage::End end) {
            if (end == Stage::End::Incomplete) self->has_failed_ = true;
            (self.get()->*next)();
          }};
}

std::string Execution::path(Kind kind, const std::string& name, const char* subresource) const {
  const kube::Resource& resource = resource_of(kind, hands_.gang_scheduler);
  return name.empty() ? kube::collection_path(resource, job_->ns)
                      : kube::object_path(resource, job_->ns, name, subresource);
}

// ------------------------------------------------------------------------------------------------------- the status

void Execution::write_status() {
  const Json merge = {{"metadata", {{"resourceVersion", job_->resource_version}}},
                      {"status", merge_patch_between(api::to_json(job_->status), api::to_json(*plan_.status))}};
  const Stage stage = begin(&Execution::after_status);
  hands_.client.call(kube::merge_patch(path(Kind::Job, job_->name, "status"), merge),
                     stage.expect([self = shared_from_this()](const Stage& same, const auto& reply) {
                       self->on_status(same, reply);
                     }));
}

void Execution::on_status(const Stage& stage, const kube::Result<Json>& reply) {
  if (!reply) {
    status_error_ = reply.error();
    return read_back(stage, Kind::Job, job_->name, job_->uid);
  }
  hands_.counters.count(job_->ns, counts_between(job_->status, *plan_.status));
  hands_.cluster.learn(Kind::Job, reply.value());
  const KeptStatus kept = kept_status(*plan_.status, api::parse_status(reply.value()));
  report(kept);
  // Without the generation no restart is safe. The rest can go on, at the pace of what fails, since the next look wants
  // to write the same again.
  has_failed_ = kept == KeptStatus::WithoutGeneration;
  is_status_cut_ = kept == KeptStatus::WithoutCounts;
}

void Execution::after_status() {
  if (has_failed_) return done_(Outcome::Failed);
  if (status_error_) return end_without_status(*status_error_);
  prepare();
}

/// 404 is a job that is gone, or a CRD without the status subresource: the job has been read back and tells.
void Execution::end_without_status(const kube::ApiError& error) {
  const bool is_stale = error.kind == ErrorKind::Conflict;
  const bool is_gone = !hands_.cluster.job(key_of(*job_));
  if (!is_stale && !is_gone && error.kind != ErrorKind::NotSent) hands_.on_trouble("pytorchjobs/status", error);
  done_(is_stale || is_gone ? Outcome::Stale : Outcome::Failed);
}

void Execution::report(KeptStatus kept) {
  if (kept == KeptStatus::Whole) return;
  if (kept == KeptStatus::WithoutReady)
    return say(true, "CRDOutdated",
               "the CRD that is installed is older than the operator and drops parts of the status; kubectl apply "
               "--server-side -f manifests/crd",
               "older CRD");
  const std::string message =
      "the CRD that is installed drops status.restarts, so that restarts cannot be counted; kubectl apply "
      "--server-side -f manifests/crd";
  hands_.on_trouble("status.restarts", {.kind = ErrorKind::Invalid, .http_status = 200, .message = message});
  say(true, "CRDOutdated", message, "outdated CRD");
}

void Execution::say(bool is_warning, const std::string& reason, const std::string& message, const std::string& once) {
  hands_.events.record({api::kApiVersion, api::kKind, job_->ns, job_->name, job_->uid, job_->resource_version},
                       {is_warning, reason, message, once});
}

void Execution::say_all() {
  for (const decide::EventText& event : plan_.events)
    if (event.once.empty() || memory_->remember_said(event.once))
      say(event.is_warning, event.reason, event.message, event.once);
}

// --------------------------------------------------------------------------------------------------------- the rest

void Execution::prepare() {
  say_all();
  const Stage stage = begin(&Execution::after_prepare);
  for (const decide::Create& wanted : plan_.prepare) create(stage, wanted);
}

void Execution::after_prepare() {
  if (has_failed_) return done_(Outcome::Failed);
  write_rest();
}

void Execution::write_rest() {
  const Stage stage = begin(&Execution::after_rest);
  look_for_foreign(stage);
  look_for_warnings(stage);
  for (const decide::Delete& wanted : plan_.deletes) remove(stage, wanted);
  for (const decide::Create& wanted : plan_.creates) create(stage, wanted);
  for (const decide::Patch& wanted : plan_.patches) patch(stage, wanted);
}

void Execution::after_rest() {
  done_(has_failed_ || is_status_cut_ ? Outcome::Failed : has_news_ ? Outcome::Stale : Outcome::Done);
}

std::chrono::seconds foreign_interval(const Memory& memory) {
  for (const decide::ForeignNames* const names : {&memory.foreign_pods, &memory.foreign_services})
    for (const auto& [name, deleted] : *names)
      if (deleted) return std::chrono::seconds(1);
  return std::chrono::seconds(10);
}

void Execution::create(const Stage& stage, const decide::Create& wanted) {
  Json object = wanted.object;
  if (wanted.kind == Kind::Secret)
    object["stringData"]["token"] = job_token(hands_.key, job_->ns, job_->name, job_->uid);
  hands_.client.call(kube::create(path(wanted.kind), object),
                     stage.expect([self = shared_from_this(), &wanted](const Stage& same, const auto& reply) {
                       self->on_created(same, wanted, reply);
                     }));
}

void Execution::on_created(const Stage& stage, const decide::Create& wanted, const kube::Result<Json>& reply) {
  if (reply) return on_made(wanted, reply.value());
  switch (reply.error().kind) {
    case ErrorKind::AlreadyExists:
    case ErrorKind::Unknown:
      return look_who_has(stage, wanted, reply.error().kind);
    case ErrorKind::NotSent:
      has_failed_ = true;
      return;
    default:
      return on_refused(wanted, reply.error());
  }
}

void Execution::on_made(const decide::Create& wanted, const Json& object) {
  hands_.cluster.learn(wanted.kind, object);
  memory_->refused.erase({wanted.kind, wanted.name});
  memory_->foreign_kinds.erase(wanted.kind);
  if (wanted.kind == Kind::Secret) memory_->token_is_there = true;
  if (wanted.kind == Kind::NetworkPolicy) memory_->network_policy_is_there = true;
  if (decide::ForeignNames* const names = memory_->foreign_names(wanted.kind)) names->erase(wanted.name);
  if (!is_nameable(wanted.kind)) return;
  say(false, fmt::format("SuccessfulCreate{}", event_name_of(wanted.kind)),
      fmt::format("Created {}: {}", lower_case_kind(wanted.kind), wanted.name));
}

void Execution::on_refused(const decide::Create& wanted, const kube::ApiError& error) {
  has_failed_ = true;
  memory_->refused[{wanted.kind, wanted.name}] = error.message;
  if (const char* const name = event_name_of(wanted.kind))
    say(true, fmt::format("FailedCreate{}", name), fmt::format("Error creating: {}", error.message),
        fmt::format("refused {} {}", wanted.name, error.message));
  else
    hands_.on_trouble(resource_of(wanted.kind, hands_.gang_scheduler).plural, error);
}

/// The name is taken, or the answer was lost: what is there tells whether it is ours.
void Execution::look_who_has(const Stage& stage, const decide::Create& wanted, ErrorKind error) {
  if (wanted.kind == Kind::Secret || wanted.kind == Kind::NetworkPolicy) {
    // Their names have the job's uid in them, so what is there is ours. Whether it is there only another attempt tells,
    // as Secrets may not be read.
    if (error == ErrorKind::AlreadyExists) return on_made(wanted, {});
    has_failed_ = true;
    return;
  }
  hands_.client.call(kube::get(path(wanted.kind, wanted.name)),
                     stage.expect([self = shared_from_this(), &wanted](const Stage&, const auto& reply) {
                       self->on_holder(wanted, reply);
                     }));
}

void Execution::on_holder(const decide::Create& wanted, const kube::Result<Json>& reply) {
  if (reply) {
    const api::Meta found = api::parse_meta(reply.value());
    if (found.controller && found.controller->uid == job_->uid) return on_made(wanted, reply.value());
    if (decide::ForeignNames* const names = memory_->foreign_names(wanted.kind))
      (*names)[wanted.name] = found.deleted;
    else
      memory_->foreign_kinds.insert(wanted.kind);
  }
  has_failed_ = true;
}

/// Whether the names that something else had are free by now.
void Execution::look_for_foreign(const Stage& stage) {
  const auto now = std::chrono::steady_clock::now();
  if (now - memory_->foreign_checked < foreign_interval(*memory_)) return;
  memory_->foreign_checked = now;
  for (const Kind kind : {Kind::Pod, Kind::Service})
    for (const auto& entry : *memory_->foreign_names(kind))
      hands_.client.call(
          kube::get(path(kind, entry.first)),
          stage.expect([self = shared_from_this(), kind, name = entry.first](const Stage&, const auto& reply) {
            self->on_foreign(kind, name, reply);
          }));
}

void Execution::on_foreign(Kind kind, const std::string& name, const kube::Result<Json>& reply) {
  decide::ForeignNames& names = *memory_->foreign_names(kind);
  if (!reply && reply.error().kind == ErrorKind::NotFound) {
    names.erase(name);
    has_news_ = true;
  } else if (reply) {
    names[name] = api::parse_meta(reply.value()).deleted;
  }
}

/// Asks what the nodes say of pods that do not start, not too often: nodes repeat what they say for minutes.
void Execution::look_for_warnings(const Stage& stage) {
  if (plan_.ask_about.empty()) memory_->kubelet_warnings.clear();
  const auto now = std::chrono::steady_clock::now();
  if (plan_.ask_about.empty() || now - memory_->warnings_checked < kInquiryInterval) return;
  memory_->warnings_checked = now;
  for (const std::string& uid : plan_.ask_about) ask_node(stage, uid);
}

void Execution::ask_node(const Stage& stage, const std::string& uid) {
  kube::Request request = kube::get(
      kube::with_query(kube::collection_path(kube::kEvents, job_->ns),
                       {{"fieldSelector", fmt::format("involvedObject.uid={},source=kubelet", uid)}, {"limit", "50"}}));
  request.priority = kube::Priority::Bulk;
  hands_.client.call(std::move(request),
                     stage.expect([self = shared_from_this(), uid](const Stage&, const auto& reply) {
                       self->on_warnings(uid, reply);
                     }));
}

void Execution::on_warnings(const std::string& uid, const kube::Result<Json>& reply) {
  if (!reply) return hands_.on_trouble("events", reply.error());
  const std::string warning = api::last_warning(reply.value());
  auto& known = memory_->kubelet_warnings;
  has_news_ = has_news_ || known.contains(uid) == warning.empty();
  if (warning.empty())
    known.erase(uid);
  else
    known[uid] = warning;
}

void Execution::patch(const Stage& stage, const decide::Patch& wanted) {
  Json merge = wanted.merge;
  merge["metadata"]["resourceVersion"] = wanted.resource_version;
  hands_.client.call(kube::merge_patch(path(wanted.kind, wanted.name), merge),
                     stage.expect([self = shared_from_this(), &wanted](const Stage& same, const auto& reply) {
                       if (reply) return self->hands_.cluster.learn(wanted.kind, reply.value());
                       self->has_failed_ = true;
                       self->read_back(same, wanted.kind, wanted.name, "");
                     }));
}

void Execution::remove(const Stage& stage, const decide::Delete& wanted) {
  kube::DeleteOptions options;
  options.uid = wanted.uid;
  options.grace_seconds = wanted.grace_seconds;
  if (wanted.kind == Kind::Job) options.propagation = "Background";
  hands_.client.call(kube::remove(path(wanted.kind, wanted.name), options),
                     stage.expect([self = shared_from_this(), &wanted](const Stage& same, const auto& reply) {
                       self->on_removed(same, wanted, reply);
                     }));
}

void Execution::on_removed(const Stage& stage, const decide::Delete& wanted, const kube::Result<Json>& reply) {
  const char* const name = event_name_of(wanted.kind);
  if (reply) {
    // The object as it goes, or a Status where it is gone at once.
    if (text_at(reply.value(), "/kind") == "Status") {
      hands_.cluster.forget(wanted.kind, job_->ns, wanted.name, wanted.uid);
    } else {
      hands_.cluster.learn(wanted.kind, reply.value());
    }
    if (name)
      say(false, fmt::format("SuccessfulDelete{}", name),
          wanted.event_message.empty() ? fmt::format("Deleted {}: {}", lower_case_kind(wanted.kind), wanted.name)
                                       : wanted.event_message);
    return;
  }
  if (reply.error().kind == ErrorKind::NotFound)
    return hands_.cluster.forget(wanted.kind, job_->ns, wanted.name, wanted.uid);
  has_failed_ = true;
  if (reply.error().kind == ErrorKind::Conflict || reply.error().kind == ErrorKind::Unknown)
    return read_back(stage, wanted.kind, wanted.name, wanted.uid);
  if (name && reply.error().kind != ErrorKind::NotSent)
    say(true, fmt::format("FailedDelete{}", name), fmt::format("Error deleting: {}", reply.error().message),
        fmt::format("undeleted {} {}", wanted.name, reply.error().message));
}

/// What became of an object is unknown: the next decision must see what is.
void Execution::read_back(const Stage& stage, Kind kind, const std::string& name, const std::string& uid) {
  hands_.client.call(kube::get(path(kind, name)),
                     stage.expect([self = shared_from_this(), kind, name, uid](const Stage&, const auto& reply) {
                       if (reply) {
                         self->hands_.cluster.learn(kind, reply.value());
                       } else if (reply.error().kind == ErrorKind::NotFound && !uid.empty()) {
                         self->hands_.cluster.forget(kind, self->job_->ns, name, uid);
                       }
                     }));
}

}  // namespace trainyard::controller
