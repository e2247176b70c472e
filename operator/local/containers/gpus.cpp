#include "local/containers/gpus.h"

#include <algorithm>

namespace trainyard::local {

std::vector<std::string> Gpus::take(size_t count) {
  std::vector<std::string> taken;
  for (const auto& [gpu, pods] : pods_on_) taken.push_back(gpu);
  std::ranges::stable_sort(taken, {}, [this](const std::string& gpu) { return pods_on_[gpu]; });
  taken.resize(std::min(count, taken.size()));
  for (const std::string& gpu : taken) ++pods_on_[gpu];
  return taken;
}

void Gpus::give_back(const std::vector<std::string>& taken) {
  for (const std::string& gpu : taken) --pods_on_[gpu];
}

bool Gpus::are_shared() const {
  return std::ranges::any_of(pods_on_, [](const auto& entry) { return entry.second > 1; });
}

}  // namespace trainyard::local
