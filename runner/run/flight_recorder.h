#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "comm/flight_record.h"

namespace trainyard::train {

/// Leaves what a rank was doing in `<folder>/flight.rank-N.json` (docs/observability.md): when it is told to, on
/// SIGUSR1 (training goes on), and on a signal that ends the process (which then ends it as without us). On signals
/// also the stack of every thread, on a fatal one of that which it met, in `<folder>/stacks.rank-N.txt`. At most one at
/// a time in a process, as handlers belong to it.
class FlightRecorder {
 public:
  FlightRecorder(std::filesystem::path folder, int rank, int world);
  ~FlightRecorder();
  FlightRecorder(const FlightRecorder&) = delete;
  FlightRecorder& operator=(const FlightRecorder&) = delete;

  /// The collectives to write from here on; none before.
  void attach(std::shared_ptr<const comm::FlightRecord> record);
  /// Writes the file now. Returns where it is; empty where it could not be written.
  std::filesystem::path write(std::string_view reason) const;

 private:
  struct Handlers;
  std::unique_ptr<Handlers> handlers_;
  std::shared_ptr<const comm::FlightRecord> record_;
};

}  // namespace trainyard::train
