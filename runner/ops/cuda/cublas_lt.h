#pragma once

#include <cublasLt.h>

#include <string>

namespace trainyard::ops::cuda {

/// What is used of cuBLASLt, which is opened when the first product runs: a program starts without it. The descriptors
/// are initialised in place, as the inline functions of cublasLt.h do, so that they are plain values.
struct CublasLt {
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtGetStatusString) status_text;
  decltype(&cublasLtMatmul) matmul;
  decltype(&cublasLtMatmulAlgoGetHeuristic) find_algorithms;
  decltype(&cublasLtMatmulDescInit_internal) init_operation;
  decltype(&cublasLtMatmulDescSetAttribute) set_operation;
  decltype(&cublasLtMatmulPreferenceInit_internal) init_preference;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference;
  decltype(&cublasLtMatrixLayoutInit_internal) init_layout;
};

/// Opens the library by its name or path. Throws InputError where it cannot be opened or lacks a function.
CublasLt open_cublas_lt(const std::string& file);

/// That of the version which this build was compiled for, opened at the first call: beside the program, where the build
/// found it, or where the loader looks. Throws as open_cublas_lt().
const CublasLt& cublas_lt();

/// Throws OutOfMemoryError, DeviceError where the device has failed, std::runtime_error for a call that was wrong.
void check(cublasStatus_t status, const char* call, int device);

}  // namespace trainyard::ops::cuda
