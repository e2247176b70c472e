#include "telemetry/process.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace trainyard::telemetry {

ProcessUse process_use() {
  ProcessUse use;
  size_t total_pages = 0, resident_pages = 0;
  std::ifstream("/proc/self/statm") >> total_pages >> resident_pages;
  use.resident_bytes = static_cast<double>(resident_pages) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) == 0) {
    const auto seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    };
    use.cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  }
  std::error_code ignored;
  for (std::filesystem::directory_iterator file("/proc/self/fd", ignored), end; file != end; file.increment(ignored))
    ++use.open_files;
  return use;
}

}  // namespace trainyard::telemetry
