#include "local/containers/container.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <sstream>
#include <system_error>

#include "common/write_all.h"
#include "local/manifest/refusal.h"

namespace trainyard::local {
namespace {

using namespace std::chrono_literals;

constexpr size_t kMaxMessage = 4096;  // what a kubelet keeps

}  // namespace

Container::~Container() {
  read_output();
  close_output();
}

void Container::start(TimePoint now) {
  const bool is_first = state_.state != api::ContainerState::Terminated;
  close_output();
  rotate_log();
  log_ = UniqueFd(::open(settings_.log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!log_.valid())
    throw Refusal(fmt::format("{}: {}", settings_.log.string(), std::system_category().message(errno)));
  std::ofstream(settings_.termination_file).flush();  // it is written only where it is there
  last_line_.clear();
  try {
    make_sub_paths(settings_.mounts);
    settings_.program.root = plan_root(settings_.mounts);
    Started started = local::start(settings_.program);
    pid_ = started.pid;
    output_ = std::move(started.output);
  } catch (const Refusal& problem) {
    throw Refusal(fmt::format("{}: {}", settings_.label, problem.what()));
  }
  const int restarts = state_.restarts + (is_first ? 0 : 1);
  state_ = {.name = settings_.name,
            .is_init = settings_.is_init,
            .state = api::ContainerState::Running,
            .restarts = restarts};
  started_ = now;
  restart_at_.reset();
  is_asked_to_end_ = false;
  if (settings_.probe) settings_.probe->begin(pid_, now);
  has_started_ = has_started_ || !settings_.probe;
}

void Container::rotate_log() const {
  std::error_code ignored;  // there is none the first time
  std::filesystem::rename(settings_.log, settings_.log.string() + ".previous", ignored);
}

void Container::end(int status, TimePoint now) {
  read_output();
  if (settings_.probe) settings_.probe->stop();
  kill_at_.reset();
  if (!signal(0)) close_output();  // what it left behind may still have something to say while it is being stopped
  const int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  state_.state = api::ContainerState::Terminated;
  state_.exit_code = code;
  state_.reason = code == 0 ? "Completed" : "Error";
  state_.message = termination_message();
  state_.ended = now;
}

std::string Container::termination_message() const {
  std::ostringstream text;
  text << std::ifstream(settings_.termination_file, std::ios::binary).rdbuf();
  const std::string message = text.str().substr(0, kMaxMessage);
  return message.empty() && settings_.says_last_line && state_.exit_code != 0 ? last_line_ : message;
}

void Container::read_output() {
  std::array<char, 65536> block{};
  while (output_.valid()) {
    const ssize_t got = ::read(output_.get(), block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return close_output();
    const std::string_view bytes(block.data(), static_cast<size_t>(got));
    const Lines::Sink show = [this](std::string_view text) { console_.state(settings_.label, settings_.colour, text); };
    lines_.add(
        bytes, std::chrono::steady_clock::now(), [this](std::string_view line) { print(line); },
        console_.columns() > 0 ? show : nullptr);
  }
}

void Container::close_output() {
  lines_.finish([this](std::string_view line) { print(line); });
  output_.reset();
  log_.reset();
}

void Container::print(std::string_view line) {
  if (!line.empty()) last_line_ = line.substr(0, kMaxMessage);
  const std::string logged = std::string(line) + "\n";
  if (const Written written = write_all(log_.get(), logged); !written.is_complete() && state_.message.empty()) {
    state_.message = std::system_category().message(written.error);  // said once; the console has the lines
    console_.warning(fmt::format("{}: {}", settings_.log.string(), state_.message));
  }
  console_.line(settings_.label, settings_.colour, line);
}

void Container::on_time(TimePoint now) {
  if (!is_running()) return;
  if (kill_at_ && *kill_at_ <= now) {
    signal(SIGKILL);
    kill_at_.reset();
  }
  if (!settings_.probe || is_asked_to_end_) return;
  settings_.probe->on_time(settings_.program, now);
  if (!settings_.probe->has_failed()) return;
  console_.warning(fmt::format("{}: its startupProbe has failed; it is stopped and started again", settings_.label));
  ask_to_end();
  kill_at_ = now + settings_.grace;
}

bool Container::on_probe_end(pid_t pid, int status) {
  if (!settings_.probe || !settings_.probe->on_end(pid, status)) return false;
  if (settings_.probe->is_redirected())
    console_.warning(
        fmt::format("{}: its startupProbe has succeeded by a redirect that is not followed", settings_.label));
  has_started_ = has_started_ || settings_.probe->has_succeeded();
  return true;
}

void Container::ask_to_end() {
  if (is_asked_to_end_) return;
  is_asked_to_end_ = true;
  signal(SIGTERM);
}

bool Container::lets_go_on() const {
  return is_sidecar() ? has_started_ : has_ended() && !has_failed();
}

std::string Container::doing(TimePoint now) const {
  if (restart_at_)
    return fmt::format("it has ended and is started again in {} s",
                       std::chrono::ceil<std::chrono::seconds>(*restart_at_ - now).count());
  if (is_asked_to_end_) return "it has had SIGTERM and has not ended yet";
  return is_sidecar() ? "its startupProbe has not succeeded yet" : "it has not ended yet";
}

std::optional<TimePoint> Container::next_time() const {
  std::optional<TimePoint> next = restart_at_;
  const auto take = [&next](const std::optional<TimePoint>& at) {
    if (at && (!next || *at < *next)) next = at;
  };
  if (is_running()) take(kill_at_);
  if (is_running() && settings_.probe && !is_asked_to_end_) take(settings_.probe->next_time());
  return next;
}

bool Container::signal(int number) const {
  return pid_ > 0 && ::kill(-pid_, number) == 0;
}

void Container::plan_restart(TimePoint now) {
  if (now - started_ >= 10min) back_off_ = 0s;
  restart_at_ = now + back_off_;
  if (back_off_ > 0s) state_.message = fmt::format("back-off {} s restarting failed container", back_off_.count());
  back_off_ = std::clamp(back_off_ * 2, 10s, 300s);
}

}  // namespace trainyard::local
