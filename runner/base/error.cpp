#include "base/error.h"

#include <fmt/format.h>

#include <filesystem>
#include <new>
#include <system_error>

#include "base/shortage.h"

namespace trainyard {
namespace {

/// Whether a file or stdout cannot be written, or the machine lacks something: its owner can mend that.
bool is_of_the_machine(const std::exception& error) {
  return dynamic_cast<const std::filesystem::filesystem_error*>(&error) || dynamic_cast<const std::bad_alloc*>(&error) ||
         is_shortage(error);
}

}  // namespace

std::string message_of(const std::exception& error) {
  if (const auto* const file = dynamic_cast<const std::filesystem::filesystem_error*>(&error))
    return fmt::format("{}: cannot be used: {}", file->path1().string(), text_with_remedy(file->code()));
  if (is_shortage(error)) {
    const std::error_code code = dynamic_cast<const std::system_error&>(error).code();
    const std::string what = error.what(), reason = code.message();
    const bool names_a_call = what.size() > reason.size() + 2;  // "fork: Resource temporarily unavailable"
    return (names_a_call ? what.substr(0, what.size() - reason.size()) : "") + text_with_remedy(code);
  }
  const bool is_of_host = dynamic_cast<const std::bad_alloc*>(&error) && !dynamic_cast<const OutOfMemoryError*>(&error);
  return is_of_host ? "out of memory" : error.what();
}

ExitCode exit_code_of(const std::exception& error) {
  if (dynamic_cast<const DefectElsewhere*>(&error)) return ExitCode::Defect;
  if (dynamic_cast<const InputError*>(&error)) return ExitCode::Input;
  if (dynamic_cast<const NotFiniteError*>(&error)) return ExitCode::NotFinite;
  if (dynamic_cast<const PeerError*>(&error)) return ExitCode::PeerLost;
  if (dynamic_cast<const DeviceError*>(&error)) return ExitCode::DeviceFault;
  if (dynamic_cast<const TerminatedError*>(&error)) return ExitCode::Terminated;
  if (is_of_the_machine(error)) return ExitCode::Input;
  return ExitCode::Defect;
}

}  // namespace trainyard
