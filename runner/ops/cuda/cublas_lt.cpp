#include "ops/cuda/cublas_lt.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "base/error.h"
#include "tensor/cuda/check.h"

namespace trainyard::ops::cuda {
namespace {

InputError not_opened(const std::string& file) {
  return InputError(
      fmt::format("matrix products on a CUDA device need cuBLASLt, which cannot be opened: {}; put {} of the CUDA "
                  "toolkit or of the wheel nvidia-cublas beside the program or into LD_LIBRARY_PATH",
                  dlerror(), file));
}

}  // namespace

CublasLt open_cublas_lt(const std::string& file) {
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);  // never closed: kernels may still be running
  if (!library) throw not_opened(file);
  CublasLt found{};
  const auto find = [&]<typename Function>(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(dlsym(library, name));
    if (!function) throw not_opened(file);
  };
  find(found.create, "cublasLtCreate");
  find(found.status_text, "cublasLtGetStatusString");
  find(found.matmul, "cublasLtMatmul");
  find(found.find_algorithms, "cublasLtMatmulAlgoGetHeuristic");
  find(found.init_operation, "cublasLtMatmulDescInit_internal");
  find(found.set_operation, "cublasLtMatmulDescSetAttribute");
  find(found.init_preference, "cublasLtMatmulPreferenceInit_internal");
  find(found.set_preference, "cublasLtMatmulPreferenceSetAttribute");
  find(found.init_layout, "cublasLtMatrixLayoutInit_internal");
  return found;
}

const CublasLt& cublas_lt() {
  static const CublasLt library = open_cublas_lt(fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR));
  return library;
}

void check(cublasStatus_t status, const char* call, int device) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  trainyard::cuda::check(cudaGetLastError(), call, device);  // of a device that has failed, the reason
  const std::string what = fmt::format("cuda:{}: {}: {}", device, call, cublas_lt().status_text(status));
  if (status == CUBLAS_STATUS_ALLOC_FAILED) throw OutOfMemoryError(what);
  if (status == CUBLAS_STATUS_EXECUTION_FAILED) throw DeviceError(what);
  throw std::runtime_error(what);
}

}  // namespace trainyard::ops::cuda
