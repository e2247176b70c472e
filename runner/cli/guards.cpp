#include "cli/guards.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <string_view>
#include <system_error>

#include "base/cpus.h"
#include "base/error.h"
#include "base/text.h"

namespace trainyard::cli {
namespace {

/// The handlers below are the process's own, and get no argument.
Report& kept_report() {
  static auto* const report = new Report;  // never destroyed: exit handlers come late
  return *report;
}

[[noreturn]] void end_with(const std::exception& error) {
  int code = static_cast<int>(exit_code_of(error));
  try {
    code = kept_report()(error);
  } catch (const std::exception&) {  // no memory even for the message
    std::fputs("trainyard: error: out of memory\n", stderr);
  }
  static_cast<void>(std::fflush(stdout));
  ::_exit(code);
}

[[noreturn]] void on_terminate() {
  try {
    if (const auto error = std::current_exception()) std::rethrow_exception(error);
  } catch (const std::exception& error) {
    end_with(error);
  } catch (...) {
    std::fputs("trainyard: defect (please report it): an exception of an unknown type\n", stderr);
  }
  std::abort();
}

bool is_called_by(std::string_view library) {
  std::array<void*, 64> frames{};
  const int count = ::backtrace(frames.data(), static_cast<int>(frames.size()));
  return std::any_of(frames.begin(), frames.begin() + count, [&](void* frame) {
    Dl_info info{};
    return ::dladdr(frame, &info) != 0 && std::string_view(info.dli_fname).find(library) != std::string_view::npos;
  });
}

/// libgomp says "Thread creation failed" on stderr and calls exit(1): it can neither fail nor be asked before.
void on_exit() {
  if (is_called_by("libgomp"))
    end_with(std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again), "OpenMP"));
}

}  // namespace

void take_file_limit_as_error() {
  static_cast<void>(std::signal(SIGXFSZ, SIG_IGN));
}

void report_unexpected_ends(Report report) {
  kept_report() = std::move(report);
  std::array<void*, 1> warm_up{};
  ::backtrace(warm_up.data(), 1);  // loads a library the first time, for which there may be no room at the end
  std::set_terminate(on_terminate);
  static_cast<void>(std::atexit(on_exit));
}

std::optional<int> capped_threads(const std::string& wanted, int cpus) {
  constexpr int kLeast = 16, kPerCpu = 4;
  const auto count = parse_int(trim(wanted));
  const int most = std::max(kLeast, kPerCpu * cpus);
  return count && *count > most ? std::optional(most) : std::nullopt;
}

void cap_threads(char** argv) {
  const char* const wanted = std::getenv("OMP_NUM_THREADS");
  if (!wanted) return;
  const int cpus = cpus_here(std::nullopt);
  const auto most = capped_threads(wanted, cpus);
  if (!most) return;
  spdlog::warn("OMP_NUM_THREADS is {}, and there {} here: {} threads are taken, and more would only slow it down",
               wanted, cpus == 1 ? "is 1 CPU" : fmt::format("are {} CPUs", cpus), *most);
  ::setenv("OMP_NUM_THREADS", fmt::format("{}", *most).c_str(), 1);
  ::execv("/proc/self/exe", argv);  // where it fails this process goes on, with what OpenMP has read
}

}  // namespace trainyard::cli
