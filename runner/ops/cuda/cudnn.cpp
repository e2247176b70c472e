#include "ops/cuda/cudnn.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <optional>

#include "base/error.h"
#include "base/library.h"
#include "ops/cuda_info.h"
#include "tensor/cuda/check.h"

namespace trainyard::ops::cuda {
namespace {

// From here on attention takes any number of keys without a mask that hides what is past the last.
constexpr size_t kLeastVersion = 91600;

std::string text_of(size_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

/// NVRTC, with which cuDNN compiles its kernels, looks for this part of itself where the loader does, and not where it
/// was found itself. Once it is there by its name it is taken.
void open_nvrtc_builtins() {
  constexpr int kMajor = CUDART_VERSION / 1000, kMinor = CUDART_VERSION % 1000 / 10;
  static_cast<void>(dlopen(fmt::format("libnvrtc-builtins.so.{}.{}", kMajor, kMinor).c_str(), RTLD_NOW | RTLD_LOCAL));
}

struct Search {
  std::optional<Cudnn> found;
  std::string missing;
};

const Search& search() {
  static const Search result = [] {
    try {
      open_nvrtc_builtins();
      return Search{open_cudnn(fmt::format("libcudnn.so.{}", CUDNN_MAJOR)), ""};
    } catch (const InputError& error) {
      return Search{{}, error.what()};
    }
  }();
  return result;
}

}  // namespace

Cudnn open_cudnn(const std::string& file) {
  const Library library(file);
  Cudnn found{};
  library.find("cudnnGetVersion", found.version);
  library.find("cudnnGetErrorString", found.status_text);
  library.find("cudnnGetLastErrorString", found.last_error);
  library.find("cudnnCreate", found.create);
  library.find("cudnnSetStream", found.set_stream);
  library.find("cudnnBackendCreateDescriptor", found.create_descriptor);
  library.find("cudnnBackendDestroyDescriptor", found.destroy_descriptor);
  library.find("cudnnBackendSetAttribute", found.set_attribute);
  library.find("cudnnBackendGetAttribute", found.get_attribute);
  library.find("cudnnBackendFinalize", found.finalize);
  library.find("cudnnBackendExecute", found.execute);
  if (found.version() < kLeastVersion)
    throw InputError(fmt::format("{} is of version {}, and attention needs {} at least", file, text_of(found.version()),
                                 text_of(kLeastVersion)));
  return found;
}

const Cudnn* cudnn() {
  return search().found ? &*search().found : nullptr;
}

void check(const Cudnn& library, cudnnStatus_t status, const char* call, int device) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  trainyard::cuda::check(cudaGetLastError(), call, device);  // of a device that has failed, the reason
  std::array<char, 512> detail{};
  library.last_error(detail.data(), detail.size());
  const std::string what = fmt::format("cuda:{}: {}: {}{}{}", device, call, library.status_text(status),
                                       detail[0] ? ": " : "", detail.data());
  if (status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED) throw OutOfMemoryError(what);
  if (status / 1000 == CUDNN_STATUS_EXECUTION_FAILED / 1000) throw DeviceError(what);
  throw CudnnRefusal(what);
}

}  // namespace trainyard::ops::cuda

namespace trainyard::ops {

std::string describe_cudnn() {
  const cuda::Cudnn* const library = cuda::cudnn();
  if (library) return cuda::text_of(library->version());
  return fmt::format("none, so attention on a GPU takes kernels that are slower: {}", cuda::search().missing);
}

}  // namespace trainyard::ops
