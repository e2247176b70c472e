#pragma once

#include <map>
#include <utility>

#include "common/mutex.h"
#include "tensor/device.h"

namespace trainyard {

/// Holds a value for each device, which is made when it is first asked for. Any thread may ask.
template <typename Value>
class ByDevice {
 public:
  template <typename... Arguments>
  Value& of(Device device, Arguments&&... arguments) {
    const MutexLock lock(mutex_);
    return values_.try_emplace(device.index, std::forward<Arguments>(arguments)...).first->second;
  }

 private:
  Mutex mutex_;
  std::map<int, Value> values_ GUARDED_BY(mutex_);
};

}  // namespace trainyard
