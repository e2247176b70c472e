#pragma once

#include <cuda_runtime.h>

#include <climits>
#include <cstddef>
#include <string>
#include <vector>

// As much of NCCL as Trainyard uses, on host_cuda's streams: a library of its own, libnccl.so.2, which is opened at run
// time as the real one is. Ranks are threads of one process; where the environment has HOST_NCCL_MAIL, the path of an
// empty folder, each is a process of its own. Declarations are those of NCCL 2.28.

extern "C" {

struct ncclComm;
using ncclComm_t = ncclComm*;

constexpr size_t NCCL_UNIQUE_ID_BYTES = 128;
struct ncclUniqueId {
  char internal[NCCL_UNIQUE_ID_BYTES];
};

enum ncclResult_t {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7,
};
enum ncclRedOp_t { ncclSum = 0, ncclProd = 1, ncclMax = 2, ncclMin = 3 };
enum ncclDataType_t {
  ncclInt8 = 0,
  ncclUint8 = 1,
  ncclInt32 = 2,
  ncclUint32 = 3,
  ncclInt64 = 4,
  ncclUint64 = 5,
  ncclFloat16 = 6,
  ncclFloat32 = 7,
  ncclFloat64 = 8,
  ncclBfloat16 = 9,
};

struct ncclConfig_t {
  int blocking;
  const char* commName;
};
#define NCCL_CONFIG_INITIALIZER \
  { INT_MIN, nullptr }

ncclResult_t ncclGetVersion(int* version);
const char* ncclGetErrorString(ncclResult_t result);
const char* ncclGetLastError(ncclComm_t comm);
ncclResult_t ncclGetUniqueId(ncclUniqueId* id);
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config);
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* part, ncclConfig_t* config);
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state);
ncclResult_t ncclCommFinalize(ncclComm_t comm);
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t ncclCommAbort(ncclComm_t comm);
ncclResult_t ncclMemAlloc(void** address, size_t bytes);
ncclResult_t ncclMemFree(void* address);
ncclResult_t ncclCommRegister(ncclComm_t comm, void* address, size_t bytes, void** handle);
ncclResult_t ncclCommDeregister(ncclComm_t comm, void* handle);
ncclResult_t ncclAllGather(const void* from, void* to, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream);
ncclResult_t ncclReduceScatter(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclBroadcast(const void* from, void* to, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream);
ncclResult_t ncclSend(const void* from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream);
ncclResult_t ncclRecv(void* to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclGroupStart();
ncclResult_t ncclGroupEnd();

}  // extern "C"

// What a test makes of the calling thread's NCCL.
namespace host_nccl {

void set_version(int version);
/// The next call of that name answers so.
void fail_next(const char* call, ncclResult_t result);
/// What ncclGetLastError() says from now on, on all threads.
void set_last_error(std::string text);
/// As a broken connection would: the communicators that are there, of all ranks, have a remote error from now on.
void break_connections();

/// What of all threads was against NCCL's rules since this was asked last. Of registered buffers, where it is
/// undefined: memory that is not ncclMemAlloc's, registered twice, freed or its communicator destroyed while it is
/// registered; ranks of which some bring registered buffers to a collective and others do not, or at other places. Of
/// communicators that never block, where it is refused: a call of one that is not through with the call before, or
/// finalized; one destroyed that is not.
std::vector<std::string> misuses();
/// Registrations now, over all communicators.
size_t registrations();

}  // namespace host_nccl
