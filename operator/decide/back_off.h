#pragma once

#include <chrono>

// How long what failed waits before it is made anew.
namespace trainyard::decide {

inline constexpr std::chrono::seconds kFirstWait{10};  ///< of a gang; a replica's is shorter

/// The `nth` restart in a row waits: none, then `first`, doubling up to five minutes.
[[nodiscard]] std::chrono::milliseconds back_off(int nth, std::chrono::milliseconds first);

/// How long what failed `streak` times in a row waits at the most.
[[nodiscard]] std::chrono::milliseconds longest_wait(int streak);

}  // namespace trainyard::decide
