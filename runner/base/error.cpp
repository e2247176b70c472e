#include "base/error.h"

#include <fmt/format.h>

#include <filesystem>
#include <new>
#include <system_error>

namespace trainyard {
namespace {

/// Of a file or stdout that cannot be written, which its owner can mend.
bool is_of_a_file(const std::exception& error) {
  const auto* const system = dynamic_cast<const std::system_error*>(&error);
  return dynamic_cast<const std::filesystem::filesystem_error*>(&error) ||
         (system && system->code() == std::errc::no_space_on_device);
}

}  // namespace

std::string message_of(const std::exception& error) {
  if (const auto* const file = dynamic_cast<const std::filesystem::filesystem_error*>(&error))
    return fmt::format("{}: cannot be used: {}", file->path1().string(), file->code().message());
  const bool is_of_host = dynamic_cast<const std::bad_alloc*>(&error) && !dynamic_cast<const OutOfMemoryError*>(&error);
  return is_of_host ? "out of memory" : error.what();
}

ExitCode exit_code_of(const std::exception& error) {
  if (dynamic_cast<const InputError*>(&error)) return ExitCode::Input;
  if (dynamic_cast<const NotFiniteError*>(&error)) return ExitCode::NotFinite;
  if (dynamic_cast<const PeerError*>(&error)) return ExitCode::PeerLost;
  if (dynamic_cast<const DeviceError*>(&error)) return ExitCode::DeviceFault;
  if (dynamic_cast<const TerminatedError*>(&error)) return ExitCode::Terminated;
  if (dynamic_cast<const std::bad_alloc*>(&error) || is_of_a_file(error)) return ExitCode::Input;
  return ExitCode::Defect;
}

}  // namespace trainyard
