#include "base/shortage.h"

#include <fmt/format.h>

#include <array>
#include <new>
#include <string_view>
#include <system_error>

namespace trainyard {
namespace {

struct Remedy {
  std::errc code;
  std::string_view text;
};

constexpr std::array kRemedies{
    Remedy{std::errc::resource_unavailable_try_again,
           "no further thread or process can be started; raise the limit on processes (ulimit -u), the pod's limit of "
           "pids, or that of memory (ulimit -v)"},
    Remedy{std::errc::too_many_files_open, "no descriptor is left; raise the limit on open files (ulimit -n)"},
    Remedy{std::errc::too_many_files_open_in_system, "no descriptor is left on this machine; raise fs.file-max"},
    Remedy{std::errc::not_enough_memory, "memory is short; raise the limit on it (the pod's, or ulimit -v)"},
    Remedy{std::errc::no_buffer_space, "memory is short; raise the limit on it (the pod's, or ulimit -v)"},
    Remedy{std::errc::file_too_large, "a file may not grow further; raise the limit on files' size (ulimit -f)"},
    Remedy{std::errc::no_space_on_device, "the disk is full; free some of it"}};

}  // namespace

std::optional<std::string> shortage_in(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error))
    return "out of memory; raise the limit on it (the pod's, or ulimit -v)";
  const auto* const system = dynamic_cast<const std::system_error*>(&error);
  if (!system) return std::nullopt;
  for (const Remedy& one : kRemedies)
    if (system->code() == one.code) return fmt::format("{}: {}", error.what(), one.text);
  return std::nullopt;
}

}  // namespace trainyard
