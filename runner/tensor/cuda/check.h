#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <string>

namespace trainyard::cuda {

/// What an error of the CUDA runtime means to who started the program.
enum class Failure : uint8_t {
  OutOfMemory,  ///< OutOfMemoryError
  Device,  ///< DeviceError: the device, its driver or a kernel has failed, and nothing on it goes on in this process
  Call,    ///< std::runtime_error: a call that was wrong, a defect of ours
};
Failure failure_of(cudaError_t error);

/// Throws the exception of failure_of(), naming device, call and error.
[[noreturn]] void fail(cudaError_t error, const char* call, int device);

inline void check(cudaError_t error, const char* call, int device) {
  if (error != cudaSuccess) fail(error, call, device);
}

/// Makes `device` the one that the calling thread's calls and launches are for. Nobody else calls cudaSetDevice. Every
/// call comes after one of these, also where it would be right on any device, as of events: a thread's first call makes
/// a context of half a GiB on its device, which is 0 until it says otherwise.
void use(int device);
cudaError_t try_to_use(int device) noexcept;
/// The same for what belongs to no device, such as pinned memory: the thread's own, else that of use_as_any(), else 0.
cudaError_t try_to_use_any() noexcept;
void use_as_any(int device);

/// Whether kernels for `architectures`, such as "80 90a 100", run on a device of compute capability major.minor. As
/// nvcc takes them: 90a runs on 9.0 only; 80-real on 8.x from 8.0 on; 80 by itself also on what comes later.
bool runs_on(const std::string& architectures, int major, int minor);

}  // namespace trainyard::cuda
