#pragma once

#include <cudnn.h>

#include <stdexcept>
#include <string>

namespace trainyard::ops::cuda {

/// What is used of cuDNN, which is opened when attention first runs on a device: a program starts, and trains, without.
struct Cudnn {
  decltype(&cudnnGetVersion) version;
  decltype(&cudnnGetErrorString) status_text;
  decltype(&cudnnGetLastErrorString) last_error;
  decltype(&cudnnCreate) create;
  decltype(&cudnnSetStream) set_stream;
  decltype(&cudnnBackendCreateDescriptor) create_descriptor;
  decltype(&cudnnBackendDestroyDescriptor) destroy_descriptor;
  decltype(&cudnnBackendSetAttribute) set_attribute;
  decltype(&cudnnBackendGetAttribute) get_attribute;
  decltype(&cudnnBackendFinalize) finalize;
  decltype(&cudnnBackendExecute) execute;
};

/// Opens the library by its name or path. Throws InputError where it cannot be opened, lacks a function, or is older
/// than what its graphs need.
Cudnn open_cudnn(const std::string& file);

/// That of the version which this build was compiled for, looked for at the first call as cublas_lt() is; null where
/// this machine has none. describe_cudnn() says why.
const Cudnn* cudnn();

/// A call that cuDNN does not take. While a graph is made: that it has no kernel for it.
class CudnnRefusal : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws OutOfMemoryError, DeviceError where the device has failed, CudnnRefusal for the rest.
void check(const Cudnn& library, cudnnStatus_t status, const char* call, int device);

}  // namespace trainyard::ops::cuda
