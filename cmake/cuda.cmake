# Whether this build has CUDA: TRAINYARD_HAS_CUDA, and with it the language CUDA and the target trainyard_cuda_runtime.
set(TRAINYARD_CUDA AUTO CACHE STRING "Kernels for CUDA devices: ON, OFF, or AUTO: where a toolkit is found")
set_property(CACHE TRAINYARD_CUDA PROPERTY STRINGS AUTO ON OFF)
set(TRAINYARD_CUDA_ARCHITECTURES "80;90a;100" CACHE STRING "Compute capabilities that the kernels are compiled for")
set(TRAINYARD_LEAST_CUDA 12.9)  # the first whose cuBLASLt knows scales of rows and columns

set(TRAINYARD_HAS_CUDA OFF)
if(TRAINYARD_CUDA STREQUAL OFF)
  return()
elseif(NOT TRAINYARD_CUDA MATCHES "^(AUTO|ON)$")
  message(FATAL_ERROR "TRAINYARD_CUDA is '${TRAINYARD_CUDA}'; it must be AUTO, ON or OFF")
endif()

# Of a project that asks for 3.25 or newer, CMake 3.25 deprecates a target that CUDA 13 no longer has, which is an error.
set(required_version ${CMAKE_MINIMUM_REQUIRED_VERSION})
set(CMAKE_MINIMUM_REQUIRED_VERSION 3.24)
# An installed toolkit, else the wheels that container/packages/cuda has brought.
find_package(CUDAToolkit ${TRAINYARD_LEAST_CUDA} QUIET)
if(NOT CUDAToolkit_FOUND)
  if(DEFINED ENV{TRAINYARD_CACHE})
    set(CUDAToolkit_ROOT $ENV{TRAINYARD_CACHE}/cuda/nvidia/cu13)
  else()
    set(CUDAToolkit_ROOT $ENV{HOME}/.cache/trainyard/cuda/nvidia/cu13)
  endif()
  find_package(CUDAToolkit ${TRAINYARD_LEAST_CUDA} QUIET)
endif()
set(CMAKE_MINIMUM_REQUIRED_VERSION ${required_version})
if(NOT CUDAToolkit_FOUND)
  if(TRAINYARD_CUDA STREQUAL ON)
    message(FATAL_ERROR "TRAINYARD_CUDA is ON, but neither a CUDA toolkit of at least ${TRAINYARD_LEAST_CUDA} is "
      "installed nor its wheels are in ${CUDAToolkit_ROOT}; container/packages/cuda brings them")
  endif()
  message(STATUS "CUDA: none found, so this build computes on the CPU only")
  return()
endif()

# Of NCCL the header alone: the library is opened when ranks talk.
find_path(TRAINYARD_NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
if(NOT TRAINYARD_NCCL_INCLUDE)
  message(FATAL_ERROR "CUDA is in ${CUDAToolkit_BIN_DIR}, but nccl.h is not to be found; install NCCL's development files "
    "(Debian and Ubuntu: libnccl-dev), name its folder with -DTRAINYARD_NCCL_INCLUDE=…, or set -DTRAINYARD_CUDA=OFF")
endif()

# And of cuDNN, which is opened when attention runs.
find_path(TRAINYARD_CUDNN_INCLUDE cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
if(NOT TRAINYARD_CUDNN_INCLUDE)
  message(FATAL_ERROR "CUDA is in ${CUDAToolkit_BIN_DIR}, but cudnn.h is not to be found; install cuDNN's development files "
    "(NVIDIA's packages: libcudnn9-dev-cuda-13; container/packages/cuda brings them), name its folder with "
    "-DTRAINYARD_CUDNN_INCLUDE=…, or set -DTRAINYARD_CUDA=OFF")
endif()

# And of CUPTI, which is opened when a trace wants to know what a device does.
find_path(TRAINYARD_CUPTI_INCLUDE cupti.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ${CUDAToolkit_BIN_DIR}/../extras/CUPTI/include)
if(NOT TRAINYARD_CUPTI_INCLUDE)
  message(FATAL_ERROR "CUDA is in ${CUDAToolkit_BIN_DIR}, but cupti.h is not to be found; install CUPTI's development files "
    "(NVIDIA's packages: cuda-cupti-dev-13-0; container/packages/cuda brings them), name its folder with "
    "-DTRAINYARD_CUPTI_INCLUDE=…, or set -DTRAINYARD_CUDA=OFF")
endif()

set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE} CACHE FILEPATH "nvcc")
set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER} CACHE FILEPATH "What nvcc compiles the host's half with")
set(CMAKE_CUDA_ARCHITECTURES ${TRAINYARD_CUDA_ARCHITECTURES})
enable_language(CUDA)
set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)  # CMake 3.25 does not know that nvcc has it
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
set(TRAINYARD_HAS_CUDA ON)
set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
message(STATUS "CUDA: ${CUDAToolkit_VERSION} for ${TRAINYARD_CUDA_ARCHITECTURES}, of ${CUDAToolkit_BIN_DIR}")

# The runtime is linked statically and asks for the driver when it is first used; larger libraries are opened when they
# are: beside the program, where this build found them, or where the loader looks. So a program starts without any.
set(CMAKE_BUILD_RPATH "$ORIGIN;$ORIGIN/../lib;${CUDAToolkit_LIBRARY_DIR}")
