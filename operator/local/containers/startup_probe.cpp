#include "local/containers/startup_probe.h"

#include <sys/wait.h>

#include <algorithm>
#include <csignal>

#include "local/manifest/refusal.h"

namespace trainyard::local {
namespace {

std::chrono::seconds seconds_of(const Json& probe, const char* field, int64_t otherwise) {
  return std::chrono::seconds(std::max(int_at(probe, field).value_or(otherwise), otherwise == 0 ? int64_t{0} : 1));
}

}  // namespace

StartupProbe::StartupProbe(const Json& probe, const Json& container)
    : delay_(seconds_of(probe, "/initialDelaySeconds", 0)),
      period_(seconds_of(probe, "/periodSeconds", 10)),
      timeout_(seconds_of(probe, "/timeoutSeconds", 1)),
      threshold_(static_cast<int>(std::max<int64_t>(int_at(probe, "/failureThreshold").value_or(3), 1))) {
  if (const Json* const exec = object_at(probe, "/exec"))
    command_ = exec->value("command", std::vector<std::string>());
  else
    question_ = question_of(probe, container);
  if (command_.empty() && !question_)
    throw Refusal("startupProbe: exec, tcpSocket and httpGet work here; replace it by one of them");
}

void StartupProbe::begin(pid_t container, TimePoint now) {
  stop();
  container_ = container;
  failures_ = 0;
  has_succeeded_ = false;
  next_try_ = now + delay_;
}

void StartupProbe::stop() {
  end_try();
  next_try_.reset();
}

void StartupProbe::end_try() {
  if (pid_ > 0) ::kill(-pid_, SIGKILL);
  pid_ = 0;
}

void StartupProbe::on_time(const Program& program, TimePoint now) {
  if (pid_ > 0 && give_up_at_ <= now) {
    end_try();
    ++failures_;
  }
  if (pid_ > 0 || has_failed() || !next_try_ || *next_try_ > now) return;
  next_try_ = now + period_;
  give_up_at_ = now + timeout_;
  try {
    ask(program);
  } catch (const Refusal&) {  // it has no such program, or has just ended
    ++failures_;
  }
}

void StartupProbe::ask(const Program& program) {
  if (command_.empty()) {
    pid_ = start([this] { return static_cast<int>(question_()); });
    return;
  }
  Program asking = program;
  asking.command = command_;
  asking.beside = container_;
  asking.is_silent = true;  // a pipe that nobody empties would stop it
  pid_ = start(asking).pid;
}

bool StartupProbe::on_end(pid_t pid, int status) {
  if (pid != pid_) return false;
  pid_ = 0;
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : static_cast<int>(Answer::No);
  is_redirected_ = question_ && code == static_cast<int>(Answer::Redirect);
  has_succeeded_ = code == static_cast<int>(Answer::Yes) || is_redirected_;
  if (has_succeeded_)
    next_try_.reset();
  else
    ++failures_;
  return true;
}

std::optional<TimePoint> StartupProbe::next_time() const {
  if (has_failed()) return std::nullopt;
  return pid_ > 0 ? std::optional(give_up_at_) : next_try_;
}

}  // namespace trainyard::local
