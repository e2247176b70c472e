#pragma once

#include <nccl.h>

#include <string>

namespace trainyard::comm {

/// The functions that are called of this machine's libnccl.so.2.
struct NcclLibrary {
  decltype(&ncclGetVersion) get_version;
  decltype(&ncclGetErrorString) get_error_string;
  decltype(&ncclGetLastError) get_last_error;
  decltype(&ncclGetUniqueId) get_unique_id;
  decltype(&ncclCommInitRankConfig) comm_init_rank_config;
  decltype(&ncclCommSplit) comm_split;
  decltype(&ncclCommGetAsyncError) comm_get_async_error;
  decltype(&ncclCommFinalize) comm_finalize;
  decltype(&ncclCommDestroy) comm_destroy;
  decltype(&ncclCommAbort) comm_abort;
  decltype(&ncclAllGather) all_gather;
  decltype(&ncclReduceScatter) reduce_scatter;
  decltype(&ncclAllReduce) all_reduce;
  decltype(&ncclBroadcast) broadcast;
  decltype(&ncclSend) send;
  decltype(&ncclRecv) recv;
  decltype(&ncclGroupStart) group_start;
  decltype(&ncclGroupEnd) group_end;

  // NCCL has it from 2.19 on; null before.
  decltype(&ncclMemAlloc) mem_alloc;
  decltype(&ncclMemFree) mem_free;
  decltype(&ncclCommRegister) comm_register;
  decltype(&ncclCommDeregister) comm_deregister;

  /// 22809 for 2.28.9.
  [[nodiscard]] int version() const;
};

/// Opened when it is first asked for, so that a program starts without it, and kept. Throws InputError where there is
/// none or one that lacks a function. NCCL reads its variables (NCCL_DEBUG, NCCL_SOCKET_IFNAME, …) by itself.
const NcclLibrary& nccl();

/// "unhandled system error (socketProgress: Connection closed by remote peer)".
std::string describe(ncclResult_t result);

/// "2.28.9".
std::string nccl_version_text(int version);

}  // namespace trainyard::comm
