#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "rendezvous/store.h"

namespace trainyard::rendezvous {

/// Why a rank ends of its own fault: it says so before it goes, for those who would only know that they lost it.
struct LastWords {
  int rank = 0;
  std::string host, text;
  ExitCode code = ExitCode::Input;  ///< that it ends with, and so do the others
};

/// The first of a world stand. Throws PeerError where the master is lost, as all here.
void leave_last_words(Store& store, const LastWords& words);
std::optional<LastWords> last_words_in(Store& store);

}  // namespace trainyard::rendezvous
