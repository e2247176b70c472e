#include <cuda_runtime.h>
#include <cupti.h>

#include <chrono>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

// It writes into a buffer of whoever looks on, and hands that back when it is full or at a flush.
namespace {

union Record {
  CUpti_Activity any;
  CUpti_ActivityKernel9 kernel;
  CUpti_ActivityMemcpy5 copy;
  CUpti_ActivityMemset4 fill;
};

struct State {
  std::mutex mutex;
  CUpti_BuffersCallbackRequestFunc requested = nullptr;
  CUpti_BuffersCallbackCompleteFunc completed = nullptr;
  std::set<CUpti_ActivityKind> enabled;
  std::vector<Record> records;  // not handed over yet
} g_state;

Record record_of(const host_cuda::Done& done) {
  Record record{};
  switch (done.kind) {
    case host_cuda::Work::Copy:
      record.copy = {CUPTI_ACTIVITY_KIND_MEMCPY,
                     CUPTI_ACTIVITY_MEMCPY_KIND_HTOD,
                     done.bytes,
                     done.begin,
                     done.end,
                     static_cast<uint32_t>(done.device),
                     done.stream};
      break;
    case host_cuda::Work::Fill:
      record.fill = {CUPTI_ACTIVITY_KIND_MEMSET,         done.bytes, done.begin, done.end,
                     static_cast<uint32_t>(done.device), done.stream};
      break;
    default:
      record.kernel = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                       static_cast<uint32_t>(done.device),
                       done.stream,
                       done.begin,
                       done.end,
                       "_ZN4host6kernelEv"};
  }
  return record;
}

void see(const host_cuda::Done& done) {
  const Record record = record_of(done);
  const std::lock_guard lock(g_state.mutex);
  if (g_state.enabled.contains(record.any.kind)) g_state.records.push_back(record);
}

/// As many as a buffer takes; what is left over.
std::vector<Record> hand_over(std::vector<Record> records) {
  uint8_t* buffer = nullptr;
  size_t bytes = 0, most = 0;
  g_state.requested(&buffer, &bytes, &most);
  const size_t count = std::min(records.size(), bytes / sizeof(Record));
  if (count == 0) return {};
  std::memcpy(buffer, records.data(), count * sizeof(Record));
  g_state.completed(nullptr, 0, buffer, bytes, count * sizeof(Record));
  return {records.begin() + static_cast<std::ptrdiff_t>(count), records.end()};
}

}  // namespace

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc requested,
                                           CUpti_BuffersCallbackCompleteFunc completed) {
  g_state.requested = requested, g_state.completed = completed;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  if (host_cuda::ordered("cuptiActivityEnable") != cudaSuccess) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  const std::lock_guard lock(g_state.mutex);
  g_state.enabled.insert(kind);
  host_cuda::look_on(see);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
  const std::lock_guard lock(g_state.mutex);
  g_state.enabled.erase(kind);
  if (g_state.enabled.empty()) host_cuda::look_on(nullptr);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityFlushAll(uint32_t) {
  std::unique_lock lock(g_state.mutex);
  std::vector<Record> records = std::exchange(g_state.records, {});
  lock.unlock();
  while (!records.empty()) records = hand_over(std::move(records));
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid_size, CUpti_Activity** record) {
  auto* const next = *record ? reinterpret_cast<uint8_t*>(*record) + sizeof(Record) : buffer;
  if (next + sizeof(Record) > buffer + valid_size) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetTimestamp(uint64_t* timestamp) {
  *timestamp =
      static_cast<uint64_t>(std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count());
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetResultString(CUptiResult result, const char** text) {
  *text = result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED ? "another client is there" : "an error of the test";
  return CUPTI_SUCCESS;
}
