// How cuBLASLt is opened, on the stand-in of tests/support/host_cuda.
#include "ops/cuda/cublas_lt.h"

#include <catch2/catch.hpp>

#include "base/error.h"
#include "tensor/tensor.h"

namespace trainyard {
namespace {

std::string error_of(const std::string& file) {
  try {
    static_cast<void>(ops::cuda::open_cublas_lt(file));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("cublas_lt: a library that is missing or another is named, with what to do", "[ops]") {
  const std::string missing = error_of("libcublasLt.so.none");
  CHECK_THAT(missing, Catch::Contains("cannot be opened: libcublasLt.so.none: cannot open shared object file"));
  CHECK_THAT(missing, Catch::Contains("put libcublasLt.so.none of the CUDA toolkit"));
  CHECK_THAT(error_of("libm.so.6"), Catch::Contains("undefined symbol: cublasLtCreate"));
}

TEST_CASE("cublas_lt: a status becomes the exception of its meaning, with the device's own error first", "[ops]") {
  CHECK_NOTHROW(ops::cuda::check(CUBLAS_STATUS_SUCCESS, "cublasLtMatmul", 1));
  CHECK_THROWS_AS(ops::cuda::check(CUBLAS_STATUS_ALLOC_FAILED, "cublasLtCreate", 1), OutOfMemoryError);
  CHECK_THROWS_AS(ops::cuda::check(CUBLAS_STATUS_EXECUTION_FAILED, "cublasLtMatmul", 1), DeviceError);
  CHECK_THROWS_WITH(ops::cuda::check(CUBLAS_STATUS_NOT_SUPPORTED, "cublasLtMatmul", 1),
                    "cuda:1: cublasLtMatmul: not supported");
}

}  // namespace trainyard
