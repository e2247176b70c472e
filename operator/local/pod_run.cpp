#include "local/pod_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <ranges>

#include "local/caller.h"
#include "local/manifest/refusal.h"

namespace trainyard::local {
namespace fs = std::filesystem;
namespace {

constexpr std::chrono::seconds kLongWait{10};  // then people are told what is waited for

bool has_ended_for_good(const Container& container) {
  return container.has_ended() && !container.restart_at();
}

}  // namespace

PodRun::PodRun(Json object, const PodContext& context, const PodPlace& place, TimePoint now)
    : object_(std::move(object)),
      pod_(api::parse_pod(object_)),
      volumes_(context, place.run_folder),
      console_(place.console) {
  pod_.created = now;
  pod_.node = context.node;
  pod_.phase = "Pending";
  const Json& spec = object_.at("spec");
  pod_.grace_seconds = int_at(spec, "/terminationGracePeriodSeconds").value_or(30);
  for (const Json& container : spec.value("initContainers", Json::array())) add(container, true, context, place);
  for (const Json& container : spec.value("containers", Json::array())) add(container, false, context, place);
  update();
}

void PodRun::add(const Json& container, bool is_init, const PodContext& context, const PodPlace& place) {
  const std::string name = text_at(container, "/name");
  const Variables own = environment_of(container, context);
  const bool is_only = object_.at("spec").at("containers").size() == 1 && !is_init;
  const std::string file = is_only ? pod_.name : fmt::format("{}.{}", pod_.name, name);
  ContainerSettings settings{.name = name, .label = is_only ? pod_.name : fmt::format("{}/{}", pod_.name, name)};
  settings.is_init = is_init;
  settings.is_sidecar = is_init && text_at(container, "/restartPolicy") == "Always";
  const auto probes_grace = int_at(container, "/startupProbe/terminationGracePeriodSeconds");
  settings.grace = std::chrono::seconds(probes_grace.value_or(pod_.grace_seconds));
  settings.says_last_line = text_at(container, "/terminationMessagePolicy") == "FallbackToLogsOnError";
  settings.colour = place.colour;
  settings.log = place.run_folder / "logs" / (file + ".log");
  settings.termination_file = volumes_.folder() / ("termination." + name);  // no volume's name has a dot
  Variables variables = place.variables;
  variables["TRAINYARD_TERMINATION_LOG"] = fs::absolute(settings.termination_file);
  settings.mark = fmt::format("{}/{}", pod_.uid, name);
  variables[kContainerMark] = settings.mark;
  for (const auto& [key, value] : own) variables[key] = value;
  settings.program.command = command_of(container, own, context);
  settings.program.environment = environment_with(variables);
  settings.program.folder = text_at(container, "/workingDir", fs::current_path().string());
  settings.mounts = volumes_.mounts_of(container, own);
  check_places(settings.mounts);
  if (const Json* const probe = object_at(container, "/startupProbe"); probe && settings.is_sidecar)
    settings.probe = std::make_unique<StartupProbe>(*probe, container);
  settings.program.staging = fs::absolute(place.run_folder / "root");
  containers_.emplace_back(std::move(settings), place.console);
}

Container* PodRun::container_of(pid_t pid) {
  const auto found =
      std::ranges::find_if(containers_, [&](const Container& each) { return each.is_running() && each.pid() == pid; });
  return found == containers_.end() ? nullptr : &*found;
}

int PodRun::on_end(Container& container, int status, TimePoint now) {
  container.end(status, now);
  const int code = container.status().exit_code.value_or(0);
  if (may_restart(container)) container.plan_restart(now);
  go_on(now);
  return code;
}

bool PodRun::on_probe_end(pid_t pid, int status, TimePoint now) {
  const auto is_its = [&](Container& each) { return each.on_probe_end(pid, status); };
  if (std::ranges::none_of(containers_, is_its)) return false;
  go_on(now);
  return true;
}

bool PodRun::may_restart(const Container& container) const {
  if (pod_.deleted) return false;
  if (container.is_sidecar()) return !is_over();
  if (container.has_failed()) return pod_.restart_policy != "Never";
  return pod_.restart_policy == "Always" && !container.is_init();
}

/// An init container has failed for good, or all but the sidecars have ended for good.
bool PodRun::is_over() const {
  const auto has_failed_init = [](const Container& each) {
    return each.is_init() && !each.is_sidecar() && has_ended_for_good(each) && each.has_failed();
  };
  const auto is_done = [](const Container& each) { return each.is_init() || has_ended_for_good(each); };
  return std::ranges::any_of(containers_, has_failed_init) || std::ranges::all_of(containers_, is_done);
}

void PodRun::go_on(TimePoint now) {
  for (Container& container : containers_) container.on_time(now);
  tell_of(pod_.deleted || is_over() ? stop_sidecars(now) : start_what_may(now), now);
  update();
}

/// Starts the next init container, or once they are through all the others. The container that keeps another from
/// starting, or that waits itself; null where none does.
const Container* PodRun::start_what_may(TimePoint now) {
  const Container* awaited = nullptr;
  for (Container& container : containers_) {
    const bool is_new = container.status().state == api::ContainerState::Unknown;
    if (is_new || (container.restart_at() && *container.restart_at() <= now)) container.start(now);
    if (container.is_init() && !container.lets_go_on()) return &container;
    if (!pod_.started) pod_.started = now;
    if (container.restart_at()) awaited = &container;
  }
  return awaited;
}

/// Asks the last sidecar that runs to end, once no other container does. The container whose end is waited for.
const Container* PodRun::stop_sidecars(TimePoint now) {
  const Container* init = nullptr;
  for (Container& container : containers_) {
    if (container.is_sidecar()) container.call_off_restart();
    if (container.is_sidecar() || !container.is_running()) continue;
    if (!container.is_init()) return &container;
    init = &container;
  }
  for (Container& container : containers_ | std::views::reverse) {
    if (!container.is_sidecar() || !container.is_running()) continue;
    container.ask_to_end();
    if (!kill_at_) kill_at_ = now + grace();
    return &container;
  }
  return init;
}

void PodRun::tell_of(const Container* awaited, TimePoint now) {
  if (awaited != awaited_) {
    awaited_ = awaited;
    awaited_since_ = now;
    is_told_ = false;
  }
  if (!awaited_ || is_told_ || now < awaited_since_ + kLongWait) return;
  is_told_ = true;
  console_.notice(fmt::format("pod {} waits for container {}: {}", pod_.name, awaited_->name(), awaited_->doing(now)));
}

void PodRun::on_time(TimePoint now) {
  if (kill_at_ && *kill_at_ <= now) kill();
  go_on(now);
}

void PodRun::remove(std::chrono::seconds grace, TimePoint now) {
  const TimePoint at = now + grace;
  if (!kill_at_ || at < *kill_at_) kill_at_ = at;
  if (!pod_.deleted) {
    pod_.deleted = at;
    for (Container& container : containers_) {
      container.call_off_restart();
      if (!container.is_sidecar()) container.ask_to_end();
    }
  }
  if (grace.count() <= 0) kill();
  go_on(now);
}

void PodRun::kill() {
  for (const Container& container : containers_) container.signal(SIGKILL);
  kill_at_.reset();
}

std::optional<TimePoint> PodRun::next_time() const {
  std::optional<TimePoint> next = is_alive() ? kill_at_ : std::nullopt;
  const auto take = [&next](const std::optional<TimePoint>& at) {
    if (at && (!next || *at < *next)) next = at;
  };
  for (const Container& container : containers_) take(container.next_time());
  if (awaited_ && !is_told_) take(awaited_since_ + kLongWait);
  return next;
}

bool PodRun::is_alive() const {
  return std::ranges::any_of(containers_, [](const Container& each) {
    return each.is_running() || each.restart_at() || (each.has_ended() && each.signal(0));
  });
}

void PodRun::update() {
  pod_.containers.clear();
  for (const Container& container : containers_) {
    api::ContainerStatus status = container.status();
    status.name = container.name();
    status.is_init = container.is_init();
    status.is_restartable = container.is_sidecar();
    if (status.state == api::ContainerState::Unknown) status.state = api::ContainerState::Waiting;
    pod_.containers.push_back(std::move(status));
  }
  pod_.phase = phase();
}

std::string PodRun::phase() const {
  bool are_all_over = true, has_failed = false, has_begun = false;
  for (const Container& container : containers_) {
    if (container.is_sidecar()) {
      are_all_over = are_all_over && !container.is_running();
    } else if (container.is_init()) {
      if (has_ended_for_good(container) && container.has_failed()) return "Failed";
    } else {
      has_begun = has_begun || container.status().state != api::ContainerState::Unknown;
      are_all_over = are_all_over && has_ended_for_good(container);
      has_failed = has_failed || container.has_failed();
    }
  }
  if (!has_begun) return "Pending";
  if (!are_all_over) return "Running";
  return has_failed ? "Failed" : "Succeeded";
}

}  // namespace trainyard::local
