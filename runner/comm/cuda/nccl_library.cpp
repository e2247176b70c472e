#include "comm/cuda/nccl_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "base/error.h"
#include "comm/nccl.h"

namespace trainyard::comm {
namespace {

constexpr const char* kName = "libnccl.so.2";

void* open_library() {
  if (void* const library = ::dlopen(kName, RTLD_NOW | RTLD_LOCAL)) return library;
  throw InputError(
      fmt::format("NCCL is not on this machine: {}; install it (Debian: libnccl2; Python: nvidia-nccl-cu13) "
                  "and set LD_LIBRARY_PATH to its folder",
                  ::dlerror()));
}

template <typename Function>
void find_if_there(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(::dlsym(library, name));
}

template <typename Function>
void find(void* library, const char* name, Function*& function) {
  find_if_there(library, name, function);
  if (!function)
    throw InputError(
        fmt::format("this machine's {} has no {}: it is older than NCCL 2.18; use a newer one", kName, name));
}

NcclLibrary find_functions() {
  void* const library = open_library();
  NcclLibrary found{};
  find(library, "ncclGetVersion", found.get_version);
  find(library, "ncclGetErrorString", found.get_error_string);
  find(library, "ncclGetLastError", found.get_last_error);
  find(library, "ncclGetUniqueId", found.get_unique_id);
  find(library, "ncclCommInitRankConfig", found.comm_init_rank_config);
  find(library, "ncclCommSplit", found.comm_split);
  find(library, "ncclCommGetAsyncError", found.comm_get_async_error);
  find(library, "ncclCommFinalize", found.comm_finalize);
  find(library, "ncclCommDestroy", found.comm_destroy);
  find(library, "ncclCommAbort", found.comm_abort);
  find(library, "ncclAllGather", found.all_gather);
  find(library, "ncclReduceScatter", found.reduce_scatter);
  find(library, "ncclAllReduce", found.all_reduce);
  find(library, "ncclBroadcast", found.broadcast);
  find(library, "ncclSend", found.send);
  find(library, "ncclRecv", found.recv);
  find(library, "ncclGroupStart", found.group_start);
  find(library, "ncclGroupEnd", found.group_end);
  find_if_there(library, "ncclMemAlloc", found.mem_alloc);
  find_if_there(library, "ncclMemFree", found.mem_free);
  find_if_there(library, "ncclCommRegister", found.comm_register);
  find_if_there(library, "ncclCommDeregister", found.comm_deregister);
  return found;
}

}  // namespace

int NcclLibrary::version() const {
  int version = 0;
  static_cast<void>(get_version(&version));  // it fails for a null pointer only
  return version;
}

const NcclLibrary& nccl() {
  static const NcclLibrary library = find_functions();
  return library;
}

std::string describe(ncclResult_t result) {
  const char* const last = nccl().get_last_error(nullptr);  // of any communicator
  const std::string detail = last ? last : "";
  return fmt::format("{}{}", nccl().get_error_string(result), detail.empty() ? "" : fmt::format(" ({})", detail));
}

std::string nccl_version_text(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

std::string describe_nccl() {
  try {
    return nccl_version_text(nccl().version());
  } catch (const InputError& error) {
    return error.what();
  }
}

}  // namespace trainyard::comm
