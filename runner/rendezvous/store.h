#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace trainyard::rendezvous {

/// A small key-value store that all ranks of one generation of a job share. Keys and values are bytes; a key has at
/// most 1 KiB, a value at most 1 MiB. Threads may call at once.
/// Every call throws PeerError, naming the master's address, when the master is lost or silent.
class Store {
 public:
  virtual ~Store() = default;

  virtual void set(const std::string& key, const std::string& value) = 0;
  [[nodiscard]] virtual std::optional<std::string> get(const std::string& key) = 0;
  /// Waits until every key is there and returns their values in order. Throws PeerError naming the missing keys.
  [[nodiscard]] virtual std::vector<std::string> wait(std::span<const std::string> keys, std::chrono::milliseconds timeout) = 0;
  /// Adds to a whole number kept as decimal text (absent counts as 0) and returns the new value.
  virtual int64_t add(const std::string& key, int64_t delta) = 0;
  /// Sets `key` to `desired` if its value is `expected` (none: if it is absent). Returns the value afterwards.
  virtual std::string compare_and_set(const std::string& key, const std::optional<std::string>& expected, const std::string& desired) = 0;
  /// True where the key was there.
  virtual bool erase(const std::string& key) = 0;

  [[nodiscard]] std::string wait(const std::string& key, std::chrono::milliseconds timeout) {
    return wait(std::span<const std::string>(&key, 1), timeout).front();
  }
};

}  // namespace trainyard::rendezvous
