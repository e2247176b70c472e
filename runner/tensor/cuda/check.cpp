#include "tensor/cuda/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <stdexcept>

#include "base/error.h"
#include "base/text.h"

namespace trainyard::cuda {
namespace {

thread_local int t_used = -1;
std::atomic<int> any_device = 0;

}  // namespace

Failure failure_of(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return Failure::OutOfMemory;
    // After any of these the process gets the same error from every further call: another process, on this device or
    // better another, has to go on.
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContained:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalAddress:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorTensorMemoryLeak:
    case cudaErrorAssert:
    case cudaErrorDevicesUnavailable:
    case cudaErrorSystemNotReady:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorOperatingSystem:
    case cudaErrorMpsClientTerminated:
    case cudaErrorExternalDevice:
    case cudaErrorUnknown:
      return Failure::Device;
    default:
      return Failure::Call;
  }
}

void fail(cudaError_t error, const char* call, int device) {
  const std::string what =
      fmt::format("cuda:{}: {}: {} ({})", device, call, cudaGetErrorString(error), cudaGetErrorName(error));
  switch (failure_of(error)) {
    case Failure::OutOfMemory:
      throw OutOfMemoryError(what);
    case Failure::Device:
      throw DeviceError(what + "; the kernel's log (dmesg, lines with Xid) and nvidia-smi tell more");
    case Failure::Call:
      break;
  }
  throw std::runtime_error(what);
}

cudaError_t try_to_use(int device) noexcept {
  if (t_used == device) return cudaSuccess;
  const cudaError_t error = cudaSetDevice(device);
  if (error == cudaSuccess) t_used = device;
  return error;
}

cudaError_t try_to_use_any() noexcept {
  return t_used >= 0 ? cudaSuccess : try_to_use(any_device);
}

void use_as_any(int device) {
  use(device);
  any_device = device;
}

void use(int device) {
  check(try_to_use(device), "cudaSetDevice", device);
}

bool runs_on(const std::string& architectures, int major, int minor) {
  return std::ranges::any_of(split(architectures, ' '), [=](std::string_view each) {
    int architecture = 0;
    const auto [rest, _] = std::from_chars(each.data(), each.data() + each.size(), architecture);
    const std::string_view suffix(rest, static_cast<size_t>(each.data() + each.size() - rest));
    const int wanted = 10 * major + minor;
    if (suffix.starts_with('a')) return wanted == architecture;
    if (suffix == "-real") return wanted >= architecture && major == architecture / 10;
    return wanted >= architecture;
  });
}

}  // namespace trainyard::cuda
