#include "controller/kept_status.h"

#include <tuple>

namespace trainyard::controller {

KeptStatus kept_status(const api::JobStatus& written, const api::JobStatus& kept) {
  const auto counts_of = [](const api::Restarts& all) { return std::tuple(all.count, all.disruptions, all.formed); };
  if (kept.restarts.generation != written.restarts.generation) return KeptStatus::WithoutGeneration;
  if (counts_of(kept.restarts) != counts_of(written.restarts)) return KeptStatus::WithoutCounts;
  return kept.ready == written.ready ? KeptStatus::Whole : KeptStatus::WithoutReady;
}

}  // namespace trainyard::controller
