#include "local/session.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <sstream>

#include "local/caller.h"
#include "local/containers/strays.h"
#include "local/manifest/refusal.h"

namespace trainyard::local {
namespace {

using namespace std::chrono_literals;

TimePoint clock_now() {
  return std::chrono::system_clock::now();
}

}  // namespace

Session::Session(std::list<JobRun>& jobs, ProgressInbox& inbox, Signals& signals, Console& console)
    : jobs_(jobs), inbox_(inbox), signals_(signals), console_(console) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // what a container leaves behind comes to this process, which ends it
}

Session::~Session() {
  for (JobRun& job : jobs_) job.kill();
  for (int tries = 0; tries < 100; ++tries) {  // a stray may have children that only then come here
    end_strays();
    while (::waitpid(-1, nullptr, WNOHANG) > 0) continue;
    if (children_of_this_process().empty()) break;
    ::poll(nullptr, 0, 10);
  }
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

std::optional<int> Session::run() {
  try {
    for (JobRun& job : jobs_) job.step(clock_now());
    while (!are_all_done()) turn();
  } catch (const Refusal&) {
    stop_all();
    while (!are_all_done()) turn();
    throw;
  }
  return signal_;
}

void Session::turn() {
  wait_for_something();
  take_signals();
  reap();
  if (console_.is_closed() && !is_stopping_) on_signal(SIGPIPE);
  for (JobRun& job : jobs_)
    if (!job.is_done()) job.step(clock_now());
}

void Session::wait_for_something() {
  std::vector<pollfd> entries{signals_.poll_entry(), {.fd = inbox_.fd(), .events = POLLIN, .revents = 0}};
  const size_t first_reader = entries.size();
  std::vector<Container*> readers;
  std::optional<TimePoint> next;
  for (JobRun& job : jobs_) {
    if (const auto at = job.next_time(); at && !job.is_done() && (!next || *at < *next)) next = at;
    for (auto& [name, pod] : job.pods())
      for (Container& container : pod.containers())
        if (container.output() >= 0) {
          readers.push_back(&container);
          entries.push_back({.fd = container.output(), .events = POLLIN, .revents = 0});
        }
  }
  const auto patience =
      next ? std::clamp(std::chrono::ceil<std::chrono::milliseconds>(*next - clock_now()), 0ms, 60'000ms) : 60'000ms;
  ::poll(entries.data(), entries.size(), static_cast<int>(patience.count()));
  inbox_.take_notice();
  for (size_t i = 0; i < readers.size(); ++i)
    if (entries[first_reader + i].revents != 0) readers[i]->read_output();
}

void Session::take_signals() {
  while (const auto number = signals_.next())
    if (*number != SIGCHLD) on_signal(*number);
}

void Session::on_signal(int number) {
  if (is_stopping_) {
    console_.warning("stopping at once");
    for (JobRun& job : jobs_) job.kill();
    return;
  }
  signal_ = number;
  console_.notice(fmt::format("{}: stopping all pods; a second signal kills them",
                              number == SIGINT ? "Ctrl-C" : ::strsignal(number)));
  stop_all();
}

void Session::stop_all() {
  is_stopping_ = true;
  for (JobRun& job : jobs_) job.stop(clock_now());
}

void Session::reap() {
  for (;;) {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) break;
    const auto owner = owner_of(info.si_pid);
    // While it is not reaped its process group cannot be another's. A container ends with its first process, and takes
    // all others with it; one that is being stopped may let them finish until its grace time is over.
    if (owner && !owner->pod.seen().deleted) owner->container.signal(SIGKILL);
    int status = 0;
    ::waitpid(info.si_pid, &status, 0);
    if (owner)
      owner->job.on_end(owner->pod, owner->container, status, clock_now());
    else
      on_probe_end(info.si_pid, status);
  }
  end_strays();
}

std::optional<Session::Owner> Session::owner_of(pid_t pid) {
  for (JobRun& job : jobs_)
    for (auto& [name, pod] : job.pods())
      if (Container* const container = pod.container_of(pid)) return Owner{job, pod, *container};
  return std::nullopt;
}

void Session::on_probe_end(pid_t pid, int status) {
  for (JobRun& job : jobs_)
    for (auto& [name, pod] : job.pods())
      if (pod.on_probe_end(pid, status, clock_now())) return;
}

void Session::end_strays() const {
  std::set<std::string> living;
  std::set<pid_t> own;
  for (JobRun& job : jobs_)
    for (auto& [name, pod] : job.pods())
      for (const Container& container : pod.containers()) {
        if (container.is_running()) own.insert(container.pid());
        if (container.probe_pid() > 0) own.insert(container.probe_pid());
        if (container.is_running() || (pod.seen().deleted && pod.is_alive())) living.insert(container.mark());
      }
  for (const pid_t pid : children_of_this_process())
    if (!own.contains(pid) && !living.contains(variable_of(pid, kContainerMark))) ::kill(pid, SIGKILL);
}

bool Session::are_all_done() const {
  return std::ranges::all_of(jobs_, [](const JobRun& job) { return job.is_done(); });
}

}  // namespace trainyard::local
