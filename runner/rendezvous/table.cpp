#include "rendezvous/table.h"

#include <fmt/format.h>

#include <stdexcept>

#include "base/text.h"
#include "rendezvous/store.h"

namespace trainyard::rendezvous {
namespace {

void require_fits(size_t key_bytes, size_t value_bytes) {
  if (key_bytes == 0 || key_bytes > kMaxKeyBytes) {
    throw std::invalid_argument(fmt::format("a key of {} bytes; a store's key has 1 to {}", key_bytes, kMaxKeyBytes));
  }
  if (value_bytes > kMaxValueBytes) {
    throw std::invalid_argument(
        fmt::format("a value of {} bytes; a store's value has at most {}", value_bytes, kMaxValueBytes));
  }
}

}  // namespace

const std::string* Table::find(const std::string& key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

void Table::set(const std::string& key, std::string_view value) {
  require_fits(key.size(), value.size());
  const std::string* const old = find(key);
  const size_t bytes = bytes_ + value.size() + (old ? 0 : key.size()) - (old ? old->size() : 0);
  if (bytes > limits_.bytes)
    throw std::invalid_argument(fmt::format("the store is full: {} is its limit", human_bytes(limits_.bytes)));
  if (!old && values_.size() >= limits_.keys)
    throw std::invalid_argument(fmt::format("the store is full: {} keys", limits_.keys));
  values_[key] = value;
  bytes_ = bytes;
}

int64_t Table::add(const std::string& key, int64_t delta) {
  const std::string* const old = find(key);
  const auto before = old ? parse_int(*old) : std::optional<int64_t>(0);
  if (!before) throw std::invalid_argument(fmt::format("add to '{}', whose value is no whole number", key));
  int64_t sum = 0;
  if (__builtin_add_overflow(*before, delta, &sum)) {
    throw std::invalid_argument(fmt::format("add to '{}': {} + {} leaves 64 bits", key, *before, delta));
  }
  set(key, fmt::format("{}", sum));
  return sum;
}

std::string Table::compare_and_set(const std::string& key, const std::optional<std::string>& expected,
                                   std::string_view desired) {
  require_fits(key.size(), desired.size());
  const std::string* const old = find(key);
  const bool equal = old ? expected == *old : !expected;
  if (!equal) return old ? *old : "";
  set(key, desired);
  return std::string(desired);
}

bool Table::erase(const std::string& key) {
  const auto found = values_.find(key);
  if (found == values_.end()) return false;
  bytes_ -= found->first.size() + found->second.size();
  values_.erase(found);
  return true;
}

}  // namespace trainyard::rendezvous
