#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "comm/stream_waits.h"
#include "tensor/moment.h"
#include "train/step_times.h"

namespace trainyard::train {

/// A Stopwatch of a device, by its own clock: the host knows only how long it took to give it the work. One thread.
class DeviceTimes {
 public:
  explicit DeviceTimes(Device device) : device_(device) {}

  void begin_lap();
  /// `own` is what the device took for all that it was given since begin_lap(), but for waits for collectives, its own
  /// and the host's, which are `waited`; null: nobody asks.
  void end_lap(double StepTimes::*own, double StepTimes::*waited = nullptr);
  /// The times of the last laps that the device is through with; 0 where it is through with none yet.
  const StepTimes& latest();

 private:
  struct Begun {
    explicit Begun(Device device) : at(device), waits(device) {}
    Moment at;
    comm::StreamWaits waits;
  };
  struct Lap {
    Moment begin, end;
    std::vector<comm::StreamWaits::Wait> waits;
    double waited_on_host;
    double StepTimes::*own;
    double StepTimes::*waited;
  };

  const Device device_;
  Stopwatch host_;
  std::optional<Begun> begun_;
  std::deque<Lap> laps_;  ///< under way
  StepTimes latest_;
};

}  // namespace trainyard::train
