#include "ops/cuda/cublas_lt.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/library.h"
#include "tensor/cuda/check.h"

namespace trainyard::ops::cuda {

CublasLt open_cublas_lt(const std::string& file) {
  try {
    const Library library(file);
    CublasLt found{};
    library.find("cublasLtCreate", found.create);
    library.find("cublasLtGetStatusString", found.status_text);
    library.find("cublasLtMatmul", found.matmul);
    library.find("cublasLtMatmulAlgoGetHeuristic", found.find_algorithms);
    library.find("cublasLtMatmulDescInit_internal", found.init_operation);
    library.find("cublasLtMatmulDescSetAttribute", found.set_operation);
    library.find("cublasLtMatmulPreferenceInit_internal", found.init_preference);
    library.find("cublasLtMatmulPreferenceSetAttribute", found.set_preference);
    library.find("cublasLtMatrixLayoutInit_internal", found.init_layout);
    return found;
  } catch (const InputError& error) {
    throw InputError(
        fmt::format("matrix products on a CUDA device need cuBLASLt, which cannot be opened: {}; put {} of the CUDA "
                    "toolkit or of the wheel nvidia-cublas beside the program or into LD_LIBRARY_PATH",
                    error.what(), file));
  }
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
