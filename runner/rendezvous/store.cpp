#include "rendezvous/store.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace trainyard::rendezvous {
namespace {

std::string some_of(std::span<const std::string> keys) {
  constexpr size_t kNamed = 8;
  std::string named;
  for (size_t i = 0; i < std::min(keys.size(), kNamed); ++i)
    named += fmt::format("{}'{}'", i == 0 ? "" : ", ", keys[i]);
  return keys.size() > kNamed ? fmt::format("{} and {} more", named, keys.size() - kNamed) : named;
}

}  // namespace

std::vector<std::string> Store::wait(std::span<const std::string> keys, std::chrono::milliseconds timeout) {
  Waited waited = try_wait(keys, timeout);
  if (waited.missing.empty()) return std::move(waited.values);
  throw PeerError(
      fmt::format("waited {} for {} in the rendezvous store", human_duration(timeout), some_of(waited.missing)));
}

std::string Store::wait(const std::string& key, std::chrono::milliseconds timeout) {
  return wait(std::span<const std::string>(&key, 1), timeout).front();
}

}  // namespace trainyard::rendezvous
