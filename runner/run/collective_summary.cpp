#include "run/collective_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "base/text.h"

namespace trainyard::train {
namespace {

constexpr const char* kWhy = "NCCL_DEBUG=INFO";  // of each line: what it is there for

std::string joined(const std::vector<std::string>& parts, const char* between) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : between) + part;
  return text;
}

std::string with_transport(const comm::Communicator& world) {
  if (world.world() == 1) return "one rank, so no all-gather and no reduce-scatter travels";
  return fmt::format("{} ranks, {}", world.world(), world.transport());
}

}  // namespace

void CollectiveCounts::add(const comm::CollectiveRecord& record) {
  std::string name = record.name;
  std::ranges::replace(name, '_', '-');  // as people grep for it
  const MutexLock lock(mutex_);
  Total& total = totals_[name];
  ++total.calls;
  total.bytes += record.bytes;
  total.took += record.ended - record.begun;
  const std::pair size(name, record.bytes);
  if (sizes_.size() < kMostSizes || sizes_.contains(size)) ++sizes_[size];
}

std::pair<CollectiveCounts::Totals, CollectiveCounts::Sizes> CollectiveCounts::take() {
  const MutexLock lock(mutex_);
  return {std::exchange(totals_, {}), std::exchange(sizes_, {})};
}

std::string text_of(const CollectiveCounts::Sizes& sizes) {
  constexpr size_t kTold = 8;
  std::vector<std::pair<std::pair<std::string, size_t>, int64_t>> sorted(sizes.begin(), sizes.end());
  std::ranges::stable_sort(sorted, std::greater(), [](const auto& each) { return each.first.second; });
  std::vector<std::string> parts;
  for (const auto& [what, calls] : sorted) {
    if (parts.size() == kTold) break;
    parts.push_back(fmt::format("{} {} x {} bytes", what.first, calls, with_thousands(static_cast<int64_t>(what.second))));
  }
  if (sorted.size() > kTold) parts.push_back(fmt::format("{} smaller sizes", sorted.size() - kTold));
  return joined(parts, ", ");
}

std::string text_of(const CollectiveCounts::Totals& totals, int64_t steps) {
  std::vector<std::string> parts;
  for (const auto& [name, total] : totals)
    parts.push_back(fmt::format("{} {} times, {} bytes, {:.1f} ms a step", name, total.calls,
                                with_thousands(static_cast<int64_t>(total.bytes)),
                                std::chrono::duration<double, std::milli>(total.took).count() /
                                    static_cast<double>(std::max<int64_t>(steps, 1))));
  return joined(parts, "; ");
}

CollectiveSummary::CollectiveSummary(comm::Communicator& world) : world_(world), before_(world.on_collective(nullptr)) {
  world.on_collective([counts = counts_, before = before_](const comm::CollectiveRecord& record) {
    if (before) before(record);
    counts->add(record);
  });
}

std::string CollectiveSummary::first_step(int64_t step) {
  auto [totals, sizes] = counts_->take();
  for (const auto& [name, total] : totals) {
    CollectiveCounts::Total& sum = since_line_[name];
    sum.calls += total.calls;
    sum.bytes += total.bytes;
    sum.took += total.took;
  }
  ++steps_;
  if (std::exchange(has_told_sizes_, true)) return "";
  const std::string text = text_of(sizes);
  return fmt::format("{}: up to step {}: {}{}{}", kWhy, step, with_transport(world_), text.empty() ? "" : ": ", text);
}

std::string CollectiveSummary::at_line(int64_t step, uint64_t memory_bytes) {
  const std::string sums = text_of(std::exchange(since_line_, {}), steps_);
  const int64_t steps = std::exchange(steps_, 0);
  return fmt::format("{}: step {}: memory {} resident; in {} step{}: {}", kWhy, step, human_bytes(memory_bytes), steps,
                     steps == 1 ? "" : "s", sums.empty() ? with_transport(world_) : sums);
}

}  // namespace trainyard::train
