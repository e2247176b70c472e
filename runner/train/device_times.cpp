#include "train/device_times.h"

#include <algorithm>
#include <utility>

namespace trainyard::train {

void DeviceTimes::begin_lap() {
  host_.lap();
  begun_.reset();
  begun_.emplace(device_);
}

void DeviceTimes::end_lap(double StepTimes::*own, double StepTimes::*waited) {
  laps_.push_back({std::move(begun_->at), Moment(device_), begun_->waits.take(), host_.lap().waited, own, waited});
  begun_.reset();
}

const StepTimes& DeviceTimes::latest() {
  for (; !laps_.empty() && laps_.front().end.has_passed(); laps_.pop_front()) {
    const Lap& lap = laps_.front();
    double waited = lap.waited_on_host;
    for (const auto& [from, until] : lap.waits) waited += until.milliseconds_since(from);
    latest_.*lap.own = std::max(lap.end.milliseconds_since(lap.begin) - waited, 0.0);
    if (lap.waited) latest_.*lap.waited = waited;
  }
  return latest_;
}

}  // namespace trainyard::train
