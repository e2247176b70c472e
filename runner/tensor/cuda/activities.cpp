#include "tensor/cuda/activities.h"

#include <cuda_runtime.h>
#include <cupti.h>
#include <cxxabi.h>
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/library.h"
#include "common/mutex.h"

namespace trainyard::cuda {
namespace {

// The records of CUDA 12.8; those of later versions begin with the same members.
using Kernel = CUpti_ActivityKernel9;
using Copy = CUpti_ActivityMemcpy5;
using Fill = CUpti_ActivityMemset4;

constexpr std::array kKinds{CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                            CUPTI_ACTIVITY_KIND_MEMSET};
constexpr size_t kMostActivities = 500'000;
constexpr size_t kBufferBytes = size_t{4} << 20;

struct Cupti {
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks;
  decltype(&cuptiActivityEnable) enable;
  decltype(&cuptiActivityDisable) disable;
  decltype(&cuptiActivityFlushAll) flush_all;
  decltype(&cuptiActivityGetNextRecord) next_record;
  decltype(&cuptiGetTimestamp) timestamp;
  decltype(&cuptiGetResultString) result_text;
};

[[noreturn]] void refuse(const std::string& why) {
  throw InputError(fmt::format("what a GPU does is seen by CUPTI, but {}", why));
}

Cupti open_cupti() {
  const std::string file = fmt::format("libcupti.so.{}", CUDART_VERSION / 1000);
  try {
    const Library library(file);
    Cupti found{};
    library.find("cuptiActivityRegisterCallbacks", found.register_callbacks);
    library.find("cuptiActivityEnable", found.enable);
    library.find("cuptiActivityDisable", found.disable);
    library.find("cuptiActivityFlushAll", found.flush_all);
    library.find("cuptiActivityGetNextRecord", found.next_record);
    library.find("cuptiGetTimestamp", found.timestamp);
    library.find("cuptiGetResultString", found.result_text);
    return found;
  } catch (const InputError& error) {
    refuse(
        fmt::format("it cannot be opened: {}; put {} of the CUDA toolkit or of the wheel nvidia-cuda-cupti beside "
                    "the program or into LD_LIBRARY_PATH",
                    error.what(), file));
  }
}

const Cupti& cupti() {
  static const Cupti library = open_cupti();
  return library;
}

void require_success(CUptiResult result, const char* call) {
  if (result == CUPTI_SUCCESS) return;
  const char* text = nullptr;
  cupti().result_text(result, &text);
  refuse(fmt::format("{} says: {}", call, text ? text : std::to_string(result)));
}

const char* copy_name(uint8_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
      return "copy host to device";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
      return "copy device to host";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD:
      return "copy on the device";
    default:
      return "copy";
  }
}

/// What CUPTI has told so far. It calls from threads of its own, and out of flush_all().
class Told {
 public:
  static Told& of_process() {
    static auto& told = *new Told;  // never destroyed: CUPTI may still call
    return told;
  }

  /// Forgets all. From now on CUPTI's clock is ahead of ours by so much.
  void restart(std::chrono::nanoseconds ahead) {
    const MutexLock lock(mutex_);
    ahead_ = ahead;
    by_device_.clear();
    count_ = dropped_ = 0;
  }

  void take(const CUpti_Activity& record) {
    if (record.kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      const auto& kernel = reinterpret_cast<const Kernel&>(record);
      add(kernel, kernel_name(kernel.name), 0);
    } else if (record.kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
      const auto& copy = reinterpret_cast<const Copy&>(record);
      add(copy, copy_name(copy.copyKind), copy.bytes);
    } else if (record.kind == CUPTI_ACTIVITY_KIND_MEMSET) {
      const auto& fill = reinterpret_cast<const Fill&>(record);
      add(fill, "fill", fill.bytes);
    }
  }

  DeviceTrace::Seen of_device(int index) const {
    const MutexLock lock(mutex_);
    const auto found = by_device_.find(index);
    return {found == by_device_.end() ? std::vector<DeviceActivity>{} : found->second, dropped_};
  }

 private:
  template <typename Record>
  void add(const Record& record, std::string name, uint64_t bytes) {
    if (record.end == 0) return;  // not over yet
    const MutexLock lock(mutex_);
    if (count_ == kMostActivities) {
      ++dropped_;
      return;
    }
    ++count_;
    by_device_[static_cast<int>(record.deviceId)].push_back({.name = std::move(name),
                                                             .bytes = static_cast<int64_t>(bytes),
                                                             .stream = record.streamId,
                                                             .begin = time_of(record.start),
                                                             .end = time_of(record.end)});
  }
  [[nodiscard]] DeviceActivity::Clock::time_point time_of(uint64_t cupti_nanoseconds) const REQUIRES(mutex_) {
    return DeviceActivity::Clock::time_point(std::chrono::nanoseconds(cupti_nanoseconds) - ahead_);
  }

  mutable Mutex mutex_;
  std::map<int, std::vector<DeviceActivity>> by_device_ GUARDED_BY(mutex_);
  std::chrono::nanoseconds ahead_ GUARDED_BY(mutex_){0};
  size_t count_ GUARDED_BY(mutex_) = 0, dropped_ GUARDED_BY(mutex_) = 0;
};

void CUPTIAPI lend_buffer(uint8_t** buffer, size_t* bytes, size_t* most_records) {
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, kBufferBytes));
  *bytes = *buffer ? kBufferBytes : 0;  // without memory CUPTI drops what there is to tell
  *most_records = 0;                    // as many as fit
}

void CUPTIAPI take_buffer(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid_bytes) {
  CUpti_Activity* record = nullptr;
  while (cupti().next_record(buffer, valid_bytes, &record) == CUPTI_SUCCESS) Told::of_process().take(*record);
  std::free(buffer);
}

/// CUPTI's time minus ours: of a few tries the one that took least.
std::chrono::nanoseconds time_ahead() {
  using Clock = DeviceActivity::Clock;
  std::chrono::nanoseconds least = std::chrono::nanoseconds::max(), ahead{0};
  for (int i = 0; i < 5; ++i) {
    uint64_t theirs = 0;
    const auto before = Clock::now();
    require_success(cupti().timestamp(&theirs), "cuptiGetTimestamp");
    const std::chrono::nanoseconds took = Clock::now() - before;
    if (took >= least) continue;
    least = took;
    ahead = std::chrono::nanoseconds(theirs) - (before.time_since_epoch() + took / 2);
  }
  return ahead;
}

void register_callbacks() {
  static std::once_flag done;
  std::call_once(done, [] {
    require_success(cupti().register_callbacks(lend_buffer, take_buffer), "cuptiActivityRegisterCallbacks");
  });
}

void disable_all() noexcept {
  for (const CUpti_ActivityKind kind : kKinds) static_cast<void>(cupti().disable(kind));
}

void enable_all() {
  CUptiResult result = CUPTI_SUCCESS;
  for (const CUpti_ActivityKind kind : kKinds)
    if (result == CUPTI_SUCCESS) result = cupti().enable(kind);
  if (result != CUPTI_SUCCESS) disable_all();
  require_success(result, "cuptiActivityEnable");
}

Mutex g_users_mutex;
int g_users GUARDED_BY(g_users_mutex) = 0;

}  // namespace

void begin_activities() {
  const MutexLock lock(g_users_mutex);
  if (g_users == 0) {
    register_callbacks();
    Told::of_process().restart(time_ahead());
    enable_all();
  }
  ++g_users;
}

void end_activities() noexcept {
  const MutexLock lock(g_users_mutex);
  if (--g_users > 0) return;
  disable_all();
  static_cast<void>(cupti().flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));  // of nobody any more
  Told::of_process().restart({});
}

DeviceTrace::Seen activities_of(int device) {
  require_success(cupti().flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), "cuptiActivityFlushAll");
  return Told::of_process().of_device(device);
}

std::string kernel_name(const char* mangled) {
  if (!mangled) return "kernel";
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> demangled(abi::__cxa_demangle(mangled, nullptr, nullptr, &status),
                                                              &std::free);
  std::string name = status == 0 ? demangled.get() : mangled;
  for (const std::string_view noise :
       {"(anonymous namespace)::", "trainyard::ops::cuda::", "trainyard::ops::", "trainyard::"})
    for (size_t at = name.find(noise); at != std::string::npos; at = name.find(noise, at)) name.erase(at, noise.size());
  if (name.ends_with(')')) {  // the parameters
    size_t at = name.size();
    int open = 0;
    do {
      --at;
      open += name[at] == ')' ? 1 : name[at] == '(' ? -1 : 0;
    } while (open > 0 && at > 0);
    if (at > 0) name.erase(at);
  }
  if (name.starts_with("void ")) name.erase(0, 5);
  return name;
}

}  // namespace trainyard::cuda
