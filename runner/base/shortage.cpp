#include "base/shortage.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cerrno>

namespace trainyard {
namespace {

std::string limit_of(__rlimit_resource resource) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "unlimited here";
  return fmt::format("{} here", limit.rlim_cur);
}

std::string remedy_of(const std::error_code& code) {
  if (code == std::errc::resource_unavailable_try_again)
    return fmt::format("no further thread or process can be started; raise the limit on processes (ulimit -u, {}), the "
                       "pod's limit of pids, or that of memory (ulimit -v)",
                       limit_of(RLIMIT_NPROC));
  if (code == std::errc::too_many_files_open)
    return fmt::format("no descriptor is left; raise the limit on open files (ulimit -n, {})", limit_of(RLIMIT_NOFILE));
  if (code == std::errc::too_many_files_open_in_system)
    return "no descriptor is left on this machine; raise fs.file-max, or end what holds files open";
  if (code == std::errc::not_enough_memory || code == std::errc::no_buffer_space)
    return "memory is short; raise the limit on it (the pod's, or ulimit -v)";
  if (code == std::errc::file_too_large)
    return "a file may not grow further; raise the limit on the size of files (ulimit -f)";
  if (code.value() == EDQUOT) return "the quota of this disk is used up; free some of it or raise it";
  return "";
}

}  // namespace

bool is_shortage(const std::error_code& code) {
  return code == std::errc::no_space_on_device || !remedy_of(code).empty();
}

bool is_shortage(const std::exception& error) {
  const auto* const system = dynamic_cast<const std::system_error*>(&error);
  return system && is_shortage(system->code());
}

std::string text_with_remedy(const std::error_code& code) {
  const std::string remedy = remedy_of(code);
  return remedy.empty() ? code.message() : fmt::format("{}: {}", code.message(), remedy);
}

}  // namespace trainyard
