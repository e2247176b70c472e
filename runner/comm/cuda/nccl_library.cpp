#include "comm/cuda/nccl_library.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/library.h"
#include "comm/nccl.h"

namespace trainyard::comm {
namespace {

constexpr const char* kName = "libnccl.so.2";

Library open_library() {
  try {
    return Library(kName);
  } catch (const InputError& error) {
    throw InputError(
        fmt::format("NCCL is not on this machine: {}; install it (Debian: libnccl2; Python: nvidia-nccl-cu13) "
                    "and set LD_LIBRARY_PATH to its folder",
                    error.what()));
  }
}

NcclLibrary find_functions() {
  const Library library = open_library();
  const auto find = [&]<typename Function>(const char* name, Function*& function) {
    library.find_if_there(name, function);
    if (!function)
      throw InputError(
          fmt::format("this machine's {} has no {}: it is older than NCCL 2.18; use a newer one", kName, name));
  };
  NcclLibrary found{};
  find("ncclGetVersion", found.get_version);
  find("ncclGetErrorString", found.get_error_string);
  find("ncclGetLastError", found.get_last_error);
  find("ncclGetUniqueId", found.get_unique_id);
  find("ncclCommInitRankConfig", found.comm_init_rank_config);
  find("ncclCommSplit", found.comm_split);
  find("ncclCommGetAsyncError", found.comm_get_async_error);
  find("ncclCommFinalize", found.comm_finalize);
  find("ncclCommDestroy", found.comm_destroy);
  find("ncclCommAbort", found.comm_abort);
  find("ncclAllGather", found.all_gather);
  find("ncclReduceScatter", found.reduce_scatter);
  find("ncclAllReduce", found.all_reduce);
  find("ncclBroadcast", found.broadcast);
  find("ncclSend", found.send);
  find("ncclRecv", found.recv);
  find("ncclGroupStart", found.group_start);
  find("ncclGroupEnd", found.group_end);
  library.find_if_there("ncclMemAlloc", found.mem_alloc);
  library.find_if_there("ncclMemFree", found.mem_free);
  library.find_if_there("ncclCommRegister", found.comm_register);
  library.find_if_there("ncclCommDeregister", found.comm_deregister);
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
