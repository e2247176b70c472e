#pragma once

#include "comm/communicator.h"
#include "comm/flight_record.h"

namespace trainyard::comm {

/// What looks on at the collectives of a communicator and of those split off it.
struct Seen {
  FlightRecord record;
  CollectiveObserver observer;
};

}  // namespace trainyard::comm
