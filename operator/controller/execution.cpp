#include "controller/execution.h"

#include <fmt/format.h>

#include <tuple>

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

/// What a kubelet said last of a pod, if that was a warning: older ones may be over, as when it pulls the image by now.
std::string last_warning(const Json& events) {
  const Json* const items = list_at(events, "/items");
  if (!items) return "";
  const Json* last = nullptr;
  const auto time_of = [](const Json& event) {
    return std::max(text_at(event, "/lastTimestamp"), text_at(event, "/eventTime"));  // both in RFC 3339, UTC
  };
  for (const Json& event : *items)
    if (!last || time_of(event) >= time_of(*last)) last = &event;
  constexpr size_t kMost = 1024;
  return last && text_at(*last, "/type") == "Warning" ? text_at(*last, "/message").substr(0, kMost) : "";
}

}  // namespace

Execution::Execution(Hands hands, std::shared_ptr<const WatchedJob> job, std::shared_ptr<Memory> memory,
                     decide::Plan plan, OnDone done)
    : hands_(hands), job_(std::move(job)), memory_(std::move(memory)), plan_(std::move(plan)), done_(std::move(done)) {}

void Execution::start() {
  if (plan_.status) return write_status();
  say_all();
  run_prepare();
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
  hands_.client.call(kube::merge_patch(path(Kind::Job, job_->name, "status"), merge),
                     [self = shared_from_this()](const kube::Result<Json>& reply) { self->on_status(reply); });
}

void Execution::on_status(const kube::Result<Json>& reply) {
  if (!reply) return status_refused(reply.error());
  hands_.counters.count(job_->ns, counts_between(job_->status, *plan_.status));
  hands_.cluster.learn(Kind::Job, reply.value());
  if (!is_status_kept(reply.value())) return done_(Outcome::Failed);
  say_all();
  run_prepare();
}

/// 404 is a job that is gone, or a CRD without the status subresource: reading the job back tells.
void Execution::status_refused(const kube::ApiError& error) {
  const bool is_stale = error.kind == ErrorKind::Conflict;
  has_failed_ = !is_stale;
  begin(1, [this, error, is_stale] {
    const bool is_gone = !hands_.cluster.job(key_of(*job_));
    if (!is_stale && !is_gone && error.kind != ErrorKind::NotSent) hands_.on_trouble("pytorchjobs/status", error);
    done_(is_stale || is_gone ? Outcome::Stale : Outcome::Failed);
  });
  read_back(Kind::Job, job_->name, job_->uid);
}

/// A CRD of the reference, or an older one, drops what it does not know. Without the generation no restart is safe; the
/// rest can go on, at the pace of what fails, since the next look wants to write the same again.
bool Execution::is_status_kept(const Json& job) {
  const api::JobStatus kept = api::parse_status(job);
  const auto counts_of = [](const api::Restarts& all) {
    return std::tuple(all.generation, all.count, all.disruptions, all.formed);
  };
  is_status_cut_ = counts_of(kept.restarts) != counts_of(plan_.status->restarts);
  if (!is_status_cut_) return true;
  const std::string message =
      "the CRD that is installed drops status.restarts, so that restarts cannot be counted; kubectl apply "
      "--server-side "
      "-f manifests/crd";
  hands_.on_trouble("status.restarts", {.kind = ErrorKind::Invalid, .http_status = 200, .message = message});
  say(true, "CRDOutdated", message, "outdated CRD");
  return kept.restarts.generation == plan_.status->restarts.generation;
}

void Execution::say(bool is_warning, const std::string& reason, const std::string& message, const std::string& once) {
  hands_.events.record({api::kApiVersion, api::kKind, job_->ns, job_->name, job_->uid, job_->resource_version},
                       {is_warning, reason, message, once});
}

void Execution::say_all() {
  for (const decide::EventText& event : plan_.events)
    if (event.once.empty() || memory_->is_new(event.once))
      say(event.is_warning, event.reason, event.message, event.once);
}

// --------------------------------------------------------------------------------------------------------- the rest

void Execution::begin(size_t count, std::function<void()> next) {
  pending_ = count;
  next_ = std::move(next);
}

void Execution::finish_one() {
  if (--pending_ > 0) return;
  const auto next = std::move(next_);
  next();
}

void Execution::run_prepare() {
  begin(plan_.prepare.size() + 1, [this] {
    if (has_failed_) return done_(Outcome::Failed);
    run_writes();
  });
  for (const decide::Create& wanted : plan_.prepare) create(wanted);
  finish_one();
}

std::chrono::seconds foreign_interval(const Memory& memory) {
  for (const decide::ForeignNames* const names : {&memory.foreign_pods, &memory.foreign_services})
    for (const auto& [name, deleted] : *names)
      if (deleted) return std::chrono::seconds(1);
  return std::chrono::seconds(10);
}

void Execution::run_writes() {
  const auto now = std::chrono::steady_clock::now();
  std::vector<std::pair<Kind, std::string>> foreign;
  if (now - memory_->foreign_checked >= foreign_interval(*memory_)) {
    for (const auto& [name, deleted] : memory_->foreign_pods) foreign.emplace_back(Kind::Pod, name);
    for (const auto& [name, deleted] : memory_->foreign_services) foreign.emplace_back(Kind::Service, name);
    memory_->foreign_checked = now;
  }
  const std::vector<std::string> asked = due_inquiries(now);
  begin(plan_.creates.size() + plan_.patches.size() + plan_.deletes.size() + foreign.size() + asked.size() + 1, [this] {
    done_(has_failed_ || is_status_cut_ ? Outcome::Failed : has_news_ ? Outcome::Stale : Outcome::Done);
  });
  for (const auto& [kind, name] : foreign) look_for_foreign(kind, name);
  for (const std::string& uid : asked) look_for_warnings(uid);
  for (const decide::Delete& wanted : plan_.deletes) remove(wanted);
  for (const decide::Create& wanted : plan_.creates) create(wanted);
  for (const decide::Patch& wanted : plan_.patches) patch(wanted);
  finish_one();
}

void Execution::create(const decide::Create& wanted) {
  Json object = wanted.object;
  if (wanted.kind == Kind::Secret)
    object["stringData"]["token"] = job_token(hands_.key, job_->ns, job_->name, job_->uid);
  hands_.client.call(
      kube::create(path(wanted.kind), object),
      [self = shared_from_this(), &wanted](const kube::Result<Json>& reply) { self->on_created(wanted, reply); });
}

void Execution::on_created(const decide::Create& wanted, const kube::Result<Json>& reply) {
  if (reply) {
    on_made(wanted, reply.value());
    return finish_one();
  }
  switch (reply.error().kind) {
    case ErrorKind::AlreadyExists:
    case ErrorKind::Unknown:
      return look_who_has(wanted, reply.error().kind);
    case ErrorKind::NotSent:
      has_failed_ = true;
      return finish_one();
    default:
      on_refused(wanted, reply.error());
      return finish_one();
  }
}

void Execution::on_made(const decide::Create& wanted, const Json& object) {
  hands_.cluster.learn(wanted.kind, object);
  memory_->refused.erase(wanted.name);
  if (wanted.kind == Kind::Secret) memory_->token_is_there = true;
  if (wanted.kind == Kind::NetworkPolicy) memory_->network_policy_is_there = true;
  if (decide::ForeignNames* const names = memory_->foreign_names(wanted.kind)) names->erase(wanted.name);
  if (!is_nameable(wanted.kind)) return;
  say(false, fmt::format("SuccessfulCreate{}", event_name_of(wanted.kind)),
      fmt::format("Created {}: {}", lower_case_kind(wanted.kind), wanted.name));
}

void Execution::on_refused(const decide::Create& wanted, const kube::ApiError& error) {
  has_failed_ = true;
  memory_->refused[wanted.name] = error.message;
  if (const char* const name = event_name_of(wanted.kind))
    say(true, fmt::format("FailedCreate{}", name), fmt::format("Error creating: {}", error.message),
        fmt::format("refused {} {}", wanted.name, error.message));
  else
    hands_.on_trouble(resource_of(wanted.kind, hands_.gang_scheduler).plural, error);
}

/// The name is taken, or the answer was lost: what is there tells whether it is ours.
void Execution::look_who_has(const decide::Create& wanted, ErrorKind error) {
  if (wanted.kind == Kind::Secret || wanted.kind == Kind::NetworkPolicy) {
    // Their names have the job's uid in them, so what is there is ours. Whether it is there only another attempt tells,
    // as Secrets may not be read.
    if (error == ErrorKind::AlreadyExists)
      on_made(wanted, {});
    else
      has_failed_ = true;
    return finish_one();
  }
  hands_.client.call(kube::get(path(wanted.kind, wanted.name)),
                     [self = shared_from_this(), &wanted](const kube::Result<Json>& reply) {
                       if (reply) {
                         const api::Meta found = api::parse_meta(reply.value());
                         if (found.controller && found.controller->uid == self->job_->uid) {
                           self->on_made(wanted, reply.value());
                         } else {
                           self->has_failed_ = true;
                           if (decide::ForeignNames* const names = self->memory_->foreign_names(wanted.kind))
                             (*names)[wanted.name] = found.deleted;
                         }
                       } else {
                         self->has_failed_ = true;
                       }
                       self->finish_one();
                     });
}

/// Whether a name that something else had is free by now.
void Execution::look_for_foreign(Kind kind, const std::string& name) {
  hands_.client.call(kube::get(path(kind, name)),
                     [self = shared_from_this(), kind, name](const kube::Result<Json>& reply) {
                       decide::ForeignNames& names = *self->memory_->foreign_names(kind);
                       if (!reply && reply.error().kind == ErrorKind::NotFound) {
                         names.erase(name);
                         self->has_news_ = true;
                       } else if (reply) {
                         names[name] = api::parse_meta(reply.value()).deleted;
                       }
                       self->finish_one();
                     });
}

/// What of the plan's questions is to be asked now: nodes repeat what they say for minutes.
std::vector<std::string> Execution::due_inquiries(std::chrono::steady_clock::time_point now) {
  if (plan_.ask_about.empty()) memory_->kubelet_warnings.clear();
  if (plan_.ask_about.empty() || now - memory_->warnings_checked < kInquiryInterval) return {};
  memory_->warnings_checked = now;
  return plan_.ask_about;
}

void Execution::look_for_warnings(const std::string& uid) {
  kube::Request request = kube::get(
      kube::with_query(kube::collection_path(kube::kEvents, job_->ns),
                       {{"fieldSelector", fmt::format("involvedObject.uid={},source=kubelet", uid)}, {"limit", "50"}}));
  request.priority = kube::Priority::Bulk;
  hands_.client.call(std::move(request), [self = shared_from_this(), uid](const kube::Result<Json>& reply) {
    if (!reply) {
      self->hands_.on_trouble("events", reply.error());
    } else {
      const std::string warning = last_warning(reply.value());
      auto& known = self->memory_->kubelet_warnings;
      self->has_news_ = self->has_news_ || known.contains(uid) == warning.empty();
      if (warning.empty())
        known.erase(uid);
      else
        known[uid] = warning;
    }
    self->finish_one();
  });
}

void Execution::patch(const decide::Patch& wanted) {
  Json merge = wanted.merge;
  merge["metadata"]["resourceVersion"] = wanted.resource_version;
  hands_.client.call(kube::merge_patch(path(wanted.kind, wanted.name), merge),
                     [self = shared_from_this(), &wanted](const kube::Result<Json>& reply) {
                       if (reply) {
                         self->hands_.cluster.learn(wanted.kind, reply.value());
                         return self->finish_one();
                       }
                       self->has_failed_ = true;
                       self->read_back(wanted.kind, wanted.name, "");
                     });
}

void Execution::remove(const decide::Delete& wanted) {
  kube::DeleteOptions options;
  options.uid = wanted.uid;
  options.grace_seconds = wanted.grace_seconds;
  if (wanted.kind == Kind::Job) options.propagation = "Background";
  hands_.client.call(
      kube::remove(path(wanted.kind, wanted.name), options),
      [self = shared_from_this(), &wanted](const kube::Result<Json>& reply) { self->on_removed(wanted, reply); });
}

void Execution::on_removed(const decide::Delete& wanted, const kube::Result<Json>& reply) {
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
    return finish_one();
  }
  if (reply.error().kind == ErrorKind::NotFound) {
    hands_.cluster.forget(wanted.kind, job_->ns, wanted.name, wanted.uid);
    return finish_one();
  }
  has_failed_ = true;
  if (reply.error().kind == ErrorKind::Conflict || reply.error().kind == ErrorKind::Unknown)
    return read_back(wanted.kind, wanted.name, wanted.uid);
  if (name && reply.error().kind != ErrorKind::NotSent)
    say(true, fmt::format("FailedDelete{}", name), fmt::format("Error deleting: {}", reply.error().message),
        fmt::format("undeleted {} {}", wanted.name, reply.error().message));
  finish_one();
}

/// What became of an object is unknown: the next decision must see what is.
void Execution::read_back(Kind kind, const std::string& name, const std::string& uid) {
  hands_.client.call(kube::get(path(kind, name)),
                     [self = shared_from_this(), kind, name, uid](const kube::Result<Json>& reply) {
                       if (reply) {
                         self->hands_.cluster.learn(kind, reply.value());
                       } else if (reply.error().kind == ErrorKind::NotFound && !uid.empty()) {
                         self->hands_.cluster.forget(kind, self->job_->ns, name, uid);
                       }
                       self->finish_one();
                     });
}

}  // namespace trainyard::controller
