#include "local/pod_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "local/caller.h"
#include "local/refusal.h"

namespace trainyard::local {
namespace fs = std::filesystem;

PodRun::PodRun(Json object, const PodContext& context, const PodPlace& place, TimePoint now)
    : object_(std::move(object)), pod_(api::parse_pod(object_)), volumes_(context, place.run_folder) {
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
  settings.program.staging = fs::absolute(place.run_folder / "root");
  containers_.emplace_back(std::move(settings), place.console);
}

Container* PodRun::container_of(pid_t pid) {
  const auto found =
      std::ranges::find_if(containers_, [&](const Container& each) { return each.is_running() && each.pid() == pid; });
  return found == containers_.end() ? nullptr : &*found;
}

void PodRun::on_end(Container& container, int status, TimePoint now) {
  container.end(status);
  if (!pod_.deleted && may_restart(container)) container.plan_restart(now);
  go_on(now);
}

bool PodRun::may_restart(const Container& container) const {
  if (container.has_failed()) return pod_.restart_policy != "Never";
  return pod_.restart_policy == "Always" && !container.is_init();
}

/// Starts what may start now: the next init container, or once they are through all the others.
void PodRun::go_on(TimePoint now) {
  for (Container& container : containers_) {
    if (pod_.deleted) break;
    const bool is_new = container.status().state == api::ContainerState::Unknown;
    if (is_new || (container.restart_at() && *container.restart_at() <= now)) container.start(now);
    if (container.is_init() && (!container.has_ended() || container.has_failed())) break;
    if (!pod_.started) pod_.started = now;
  }
  update();
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
    for (Container& container : containers_) container.call_off_restart(), container.signal(SIGTERM);
  }
  if (grace.count() <= 0) kill();
}

void PodRun::kill() {
  for (const Container& container : containers_) container.signal(SIGKILL);
  kill_at_.reset();
}

std::optional<TimePoint> PodRun::next_time() const {
  std::optional<TimePoint> next = is_alive() ? kill_at_ : std::nullopt;
  for (const Container& container : containers_)
    if (container.restart_at() && (!next || *container.restart_at() < *next)) next = container.restart_at();
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
    if (status.state == api::ContainerState::Unknown) status.state = api::ContainerState::Waiting;
    pod_.containers.push_back(std::move(status));
  }
  pod_.phase = phase();
}

std::string PodRun::phase() const {
  const auto is_over = [](const Container& each) { return each.has_ended() && !each.restart_at(); };
  bool are_all_over = true, has_failed = false, has_begun = false;
  for (const Container& container : containers_) {
    if (container.is_init()) {
      if (is_over(container) && container.has_failed()) return "Failed";
      continue;
    }
    has_begun = has_begun || container.status().state != api::ContainerState::Unknown;
    are_all_over = are_all_over && is_over(container);
    has_failed = has_failed || container.has_failed();
  }
  if (!has_begun) return "Pending";
  if (!are_all_over) return "Running";
  return has_failed ? "Failed" : "Succeeded";
}

}  // namespace trainyard::local
