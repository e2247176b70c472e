#pragma once

#include <cstddef>
#include <cstdint>

// As much of CUPTI as Trainyard uses: the records have what is read of them, in an order of their own.
#define CUPTIAPI

using CUcontext = void*;

enum CUptiResult {
  CUPTI_SUCCESS = 0,
  CUPTI_ERROR_MAX_LIMIT_REACHED = 12,
  CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED = 39,
};
enum CUpti_ActivityKind {
  CUPTI_ACTIVITY_KIND_MEMCPY = 1,
  CUPTI_ACTIVITY_KIND_MEMSET = 2,
  CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL = 10,
};
enum {
  CUPTI_ACTIVITY_MEMCPY_KIND_HTOD = 1,
  CUPTI_ACTIVITY_MEMCPY_KIND_DTOH = 2,
  CUPTI_ACTIVITY_MEMCPY_KIND_DTOD = 8,
};
enum { CUPTI_ACTIVITY_FLAG_FLUSH_FORCED = 1 };

struct CUpti_Activity {
  CUpti_ActivityKind kind;
};
struct CUpti_ActivityKernel9 {
  CUpti_ActivityKind kind;
  uint32_t deviceId, streamId;
  uint64_t start, end;
  const char* name;
};
struct CUpti_ActivityMemcpy5 {
  CUpti_ActivityKind kind;
  uint8_t copyKind;
  uint64_t bytes, start, end;
  uint32_t deviceId, streamId;
};
struct CUpti_ActivityMemset4 {
  CUpti_ActivityKind kind;
  uint64_t bytes, start, end;
  uint32_t deviceId, streamId;
};

using CUpti_BuffersCallbackRequestFunc = void (*)(uint8_t** buffer, size_t* size, size_t* most_records);
using CUpti_BuffersCallbackCompleteFunc = void (*)(CUcontext context, uint32_t stream, uint8_t* buffer, size_t size,
                                                   size_t valid_size);

extern "C" {
CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc requested,
                                           CUpti_BuffersCallbackCompleteFunc completed);
CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind);
CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind);
CUptiResult cuptiActivityFlushAll(uint32_t flag);
CUptiResult cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid_size, CUpti_Activity** record);
CUptiResult cuptiGetTimestamp(uint64_t* timestamp);
CUptiResult cuptiGetResultString(CUptiResult result, const char** text);
}
