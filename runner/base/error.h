#pragma once

#include <new>
#include <stdexcept>
#include <string>

// The exception's type is the exit code of the program (docs/interfaces.md). cli/ holds the only catch.
namespace trainyard {

/// Exit codes of `trainyard`; a rank killed by signal n ends as 128 + n.
enum class ExitCode : int {
  Done = 0,
  Defect = 1,         ///< ours: any exception not named below
  Input = 2,          ///< InputError, std::bad_alloc, std::filesystem::filesystem_error, a full disk
  NotFinite = 3,      ///< NotFiniteError
  PeerLost = 138,     ///< PeerError
  DeviceFault = 140,  ///< DeviceError
  Terminated = 143,   ///< TerminatedError
};

/// The user can mend it and a restart would repeat it: configuration, input files, memory, two ranks with one number.
/// The message says where (file, line, field), what, and what would be right.
class InputError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// An InputError of the world: its ranks throw it in the same words, and one prints it, or the rank whose fault it is.
class VerdictError : public InputError {
 public:
  VerdictError(const std::string& text, bool is_printed_here) : InputError(text), is_printed_here_(is_printed_here) {}
  [[nodiscard]] bool is_printed_here() const { return is_printed_here_; }

 private:
  bool is_printed_here_;
};

/// Another rank ended of a defect, whose text this is: who lost it ends with the same code, and not as one whose peer a
/// restart would bring back.
class DefectElsewhere : public VerdictError {
  using VerdictError::VerdictError;
};

/// A rank, the master or the network was lost, or did not come in time. The message names it.
class PeerError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// This node's device is at fault (ECC, driver, an illegal access): the operator moves the gang elsewhere. The message
/// names the device.
class DeviceError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The loss is NaN or infinite, or no step had a gradient that was finite. The message names the step, and the first
/// bad tensor where one is at fault.
class NotFiniteError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// SIGTERM arrived, on this rank or another, and the checkpoint is saved, where checkpoints are wanted.
class TerminatedError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A device has no room; the message says what holds its memory. As InputError: a restart would repeat it.
class OutOfMemoryError : public std::bad_alloc {
 public:
  explicit OutOfMemoryError(const std::string& text) : text_(text) {}
  [[nodiscard]] const char* what() const noexcept override { return text_.what(); }

 private:
  std::runtime_error text_;  // a text that is copied without throwing
};

/// What `error` says, in words for people also where its type is none of ours.
std::string message_of(const std::exception& error);

/// The exit code that belongs to `error`'s type; `Defect` for any type of nobody's above.
ExitCode exit_code_of(const std::exception& error);

}  // namespace trainyard
