#include "base/error.h"

#include <new>

namespace trainyard {

ExitCode exit_code_of(const std::exception& error) {
  if (dynamic_cast<const InputError*>(&error)) return ExitCode::Input;
  if (dynamic_cast<const NotFiniteError*>(&error)) return ExitCode::NotFinite;
  if (dynamic_cast<const PeerError*>(&error)) return ExitCode::PeerLost;
  if (dynamic_cast<const DeviceError*>(&error)) return ExitCode::DeviceFault;
  if (dynamic_cast<const TerminatedError*>(&error)) return ExitCode::Terminated;
  if (dynamic_cast<const std::bad_alloc*>(&error)) return ExitCode::Input;
  return ExitCode::Defect;
}

}  // namespace trainyard
