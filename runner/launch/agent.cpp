#include "launch/agent.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "common/signal_queue.h"
#include "launch/child.h"
#include "launch/dcgm.h"
#include "launch/error_folder.h"
#include "launch/gang.h"
#include "launch/output.h"
#include "launch/termination_log.h"
#include "launch/world.h"

namespace trainyard::launch {
namespace {
namespace fs = std::filesystem;

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::initializer_list<int> kSignals{SIGTERM, SIGINT, SIGCHLD, SIGUSR1};  // which a launcher hears

struct Rank {
  pid_t pid = 0;
  bool is_running = false;
  std::vector<Stream> streams;  ///< stdout and stderr, those that are not passed through
};

class Agent {
 public:
  Agent(const LaunchOptions& options, const rendezvous::Environment& environment)
      : options_(options),
        environment_(environment),
        world_(local_world(options, environment)),
        gang_(world_.ranks, options.grace),
        signals_(std::in_place, kSignals) {}

  int run() {
    // Grandchildren whose parent ends come to us, to be reaped here and not left behind.
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (!options_.log_dir.empty()) make_log_folder();
    run_ranks();
    while (may_start_again()) {
      note(fmt::format("{}; restart {} of {}", failure_text(), world_.restart + 1, options_.max_restarts));
      form_world_again();
      run_ranks();
    }
    report();
    return gang_.exit_code();
  }

 private:
  void run_ranks() {
    start_all();
    while (!gang_.is_over()) turn();
    drain();
  }

  [[nodiscard]] bool may_start_again() const {
    const auto& failure = gang_.first_failure();
    return failure && !gang_.is_asked() && world_.restart < options_.max_restarts &&
           is_worth_restarting(*failure, options_.is_trainyard);
  }

  /// No rank of ours is left, so none of an earlier start can meet the next ones. On other nodes some may be: those are
  /// of an earlier restart, which the store refuses.
  void form_world_again() {
    signals_.reset();  // meeting other nodes listens to signals itself
    world_ = local_world(options_, environment_, world_.restart + 1);
    signals_.emplace(kSignals);
    gang_ = Gang(world_.ranks, options_.grace);
    ranks_.clear();
  }

  void start_all() {
    ranks_.resize(static_cast<size_t>(world_.ranks));
    try {
      for (int local_rank = 0; local_rank < world_.ranks; ++local_rank) start(local_rank);
    } catch (const std::exception&) {
      signal_all(SIGKILL);  // a gang that is not whole has nothing to save
      for (Rank& rank : ranks_) {
        if (rank.is_running) ::waitpid(rank.pid, nullptr, 0);
      }
      throw;
    }
    world_.listener.reset();  // rank 0 has it
  }

  void make_log_folder() {
    std::error_code error;
    fs::create_directories(options_.log_dir, error);
    if (error) throw InputError(fmt::format("--log-dir: cannot make {}: {}", options_.log_dir, error.message()));
  }

  void start(int local_rank) {
    Rank& rank = ranks_[static_cast<size_t>(local_rank)];
    ChildSettings child;
    child.command = options_.command;
    child.ignores_user_signal = options_.is_trainyard;  // until it handles it
    if (options_.is_trainyard) child.command.insert(child.command.begin(), fs::read_symlink("/proc/self/exe").string());
    rendezvous::Environment environment = environment_;
    environment["TRAINYARD_TERMINATION_LOG"] = errors_.empty_file_of(local_rank);
    environment["TORCHELASTIC_MAX_RESTARTS"] = fmt::format("{}", options_.max_restarts);
    child.environment = environment_of(local_rank, world_, environment);
    if (local_rank == 0 && world_.listener.valid()) child.inherited = world_.listener.get();
    const UniqueFd out = stream_for(rank, local_rank, STDOUT_FILENO, "out"),
                   err = stream_for(rank, local_rank, STDERR_FILENO, "err");
    child.out = out.get();
    child.err = err.get();
    rank.pid = start_child(child);
    rank.is_running = true;
  }

  /// The child's end of a new stream; none where the child gets our terminal itself.
  UniqueFd stream_for(Rank& rank, int local_rank, int target, const char* ending) {
    const int number = world_.first_rank + local_rank;
    const bool is_logged = !options_.log_dir.empty();
    if (number == 0 && !is_logged && ::isatty(target)) return {};
    const std::string log =
        is_logged ? (fs::path(options_.log_dir) / fmt::format("rank-{}.{}", number, ending)).string() : "";
    return rank.streams.emplace_back(target, fmt::format("[rank {}] ", number), log).take_child_end();
  }

  /// One wait, and all that it brought.
  void turn() {
    wait_for_events(gang_.deadline());
    while (const auto signal = signals_->next()) on_signal(*signal);
    reap();
    act(gang_.at(Clock::now()));
  }

  /// SIGUSR1 is for ranks of ours, which tell what they are doing; of other programs nobody knows.
  void on_signal(int signal) {
    if (signal == SIGUSR1) {
      if (options_.is_trainyard) signal_all(SIGUSR1);
    } else if (signal != SIGCHLD) {
      act(gang_.asked_to_stop(Clock::now()));
    }
  }

  void wait_for_events(std::optional<Clock::time_point> deadline) {
    std::vector<pollfd> entries{signals_->poll_entry()};
    std::vector<Stream*> streams;
    for (Rank& rank : ranks_) {
      for (Stream& stream : rank.streams) {
        if (stream.is_open()) entries.push_back(stream.poll_entry()), streams.push_back(&stream);
      }
    }
    int milliseconds = -1;
    if (deadline)
      milliseconds = static_cast<int>(std::clamp<int64_t>(
          std::chrono::ceil<std::chrono::milliseconds>(*deadline - Clock::now()).count(), 0, 60'000));
    if (::poll(entries.data(), entries.size(), milliseconds) <= 0) return;
    for (size_t i = 0; i < streams.size(); ++i) {
      if (entries[i + 1].revents != 0) streams[i]->pump();
    }
  }

  void reap() {
    std::vector<Ending> endings;
    for (;;) {
      siginfo_t info{};
      // Looked at first: while it is not reaped its group's number cannot become another's.
      if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) break;
      const auto rank =
          std::ranges::find_if(ranks_, [&](const Rank& one) { return one.is_running && one.pid == info.si_pid; });
      if (rank != ranks_.end()) {
        ::kill(-info.si_pid, SIGKILL);  // what it started and left
        rank->is_running = false;
        const bool was_killed = info.si_code != CLD_EXITED;
        const int local_rank = static_cast<int>(rank - ranks_.begin());
        endings.push_back(
            {local_rank, was_killed ? 128 + info.si_status : info.si_status, was_killed ? info.si_status : 0});
      }
      ::waitpid(info.si_pid, nullptr, 0);
    }
    if (!endings.empty()) act(gang_.ended(std::move(endings), Clock::now()));
  }

  void act(Gang::Action action) {
    if (action == Gang::Action::Terminate) signal_all(SIGTERM);
    if (action == Gang::Action::Kill) signal_all(SIGKILL);
  }

  /// SIGTERM goes to the ranks alone, who know what to do; SIGKILL to all that they started.
  void signal_all(int signal) {
    for (const Rank& rank : ranks_) {
      if (!rank.is_running) continue;
      if (signal == SIGKILL && gang_.phase() == Gang::Phase::Killed) {
        stuck_.push_back(world_.first_rank + static_cast<int>(&rank - ranks_.data()));
        note(fmt::format("rank {} did not end in time and is killed", stuck_.back()));
      }
      ::kill(signal == SIGKILL ? -rank.pid : rank.pid, signal);
    }
  }

  /// What the ranks wrote last, and the end of what they left behind and reap() killed. What has made itself
  /// independent of them may stay for ever, and hold the streams open: not longer than this.
  void drain() {
    const auto deadline = Clock::now() + 1s;
    const auto is_open = [](const Rank& rank) { return std::ranges::any_of(rank.streams, &Stream::is_open); };
    while ((std::ranges::any_of(ranks_, is_open) || has_children()) && Clock::now() < deadline) {
      wait_for_events(deadline);
      while (const auto signal = signals_->next()) on_signal(*signal);
      reap();
    }
  }

  static bool has_children() {
    siginfo_t info{};
    return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
  }

  void report() {
    if (!gang_.first_failure()) {
      if (gang_.exit_code() != 0)
        write_termination_log(fmt::format("launch: asked to stop, exit code {}", gang_.exit_code()));
      else if (const std::string word = last_word(); world_.first_rank == 0 && !word.empty())
        write_termination_log(word);
      return;
    }
    note(failure_text());
    write_termination_log(failure_text());
  }

  /// Rank 0's, of a run that is done.
  [[nodiscard]] std::string last_word() const { return one_line(read_file(errors_.file_of(0), size_t{1} << 20)); }

  [[nodiscard]] std::string failure_text() const {
    const auto& failure = gang_.first_failure();
    const std::string how =
        failure->signal ? fmt::format("killed by signal {} ({}{})", failure->signal, ::strsignal(failure->signal),
                                      failure->signal == SIGKILL ? ", out of memory?" : "")
                        : fmt::format("exit code {}", failure->code);
    const std::string why = reason_of(failure->rank);
    // Whoever gave up first waited for a rank that may have waited in turn; one that does not even end waits for nobody.
    const std::string stuck =
        failure->code == static_cast<int>(ExitCode::PeerLost) && !stuck_.empty()
            ? fmt::format("; it waited in the end for rank{} {}, which did not answer and had to be killed",
                          stuck_.size() == 1 ? "" : "s", fmt::join(stuck_, ", "))
            : "";
    return fmt::format("rank {} failed first, {}{}{}{}", world_.first_rank + failure->rank, how,
                       why.empty() ? "" : ": ", why, stuck);
  }

  /// What the rank itself gave as its last error, else the last line on its stderr.
  [[nodiscard]] std::string reason_of(int local_rank) const {
    const std::string told = one_line(read_file(errors_.file_of(local_rank), size_t{1} << 20));
    if (!told.empty()) return told;
    for (const Stream& stream : ranks_[static_cast<size_t>(local_rank)].streams) {
      if (stream.target() == STDERR_FILENO) return one_line(stream.last_line());
    }
    return "";  // it stands on the terminal already
  }

  static void note(const std::string& text) { fmt::print(stderr, "trainyard launch: {}\n", text); }

  const LaunchOptions& options_;
  const rendezvous::Environment& environment_;
  LocalWorld world_;
  Gang gang_;
  std::optional<SignalQueue> signals_;
  ErrorFolder errors_;
  std::vector<Rank> ranks_;
  std::vector<int> stuck_;  ///< ranks that had to be killed, by their number in the world
};

}  // namespace

int launch_ranks(const LaunchOptions& options, const rendezvous::Environment& environment) {
  Agent agent(options, environment);
  const DcgmPause pause(environment);  // ends before the agent, which still holds signals back
  return agent.run();
}

}  // namespace trainyard::launch
