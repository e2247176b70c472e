#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace trainyard::rendezvous {

constexpr size_t kMaxKeyBytes = size_t{1} << 10;
constexpr size_t kMaxValueBytes = size_t{1} << 20;

/// What a wait found: every key's value in order, or the keys that did not come in time.
struct Waited {
  std::vector<std::string> values;
  std::vector<std::string> missing;
};

/// A small key-value store that all ranks of one generation of a job share. Keys and values are bytes; a key has at
/// most kMaxKeyBytes, a value at most kMaxValueBytes (std::invalid_argument otherwise). Threads may call at once.
/// Every call throws PeerError, naming the master's address, when the master is lost or silent.
class Store {
 public:
  virtual ~Store() = default;

  virtual void set(const std::string& key, const std::string& value) = 0;
  [[nodiscard]] virtual std::optional<std::string> get(const std::string& key) = 0;
  /// Waits until every key is there or `timeout` has passed (zero: looks once).
  [[nodiscard]] virtual Waited try_wait(std::span<const std::string> keys, std::chrono::milliseconds timeout) = 0;
  /// Adds to a whole number kept as decimal text (absent counts as 0) and returns the new value. std::invalid_argument
  /// where the value is no number or the sum leaves 64 bits; the value is then untouched.
  virtual int64_t add(const std::string& key, int64_t delta) = 0;
  /// Sets `key` to `desired` if its value is `expected` (none: if it is absent). Returns the value afterwards;
  /// "" where it is absent still.
  virtual std::string compare_and_set(const std::string& key, const std::optional<std::string>& expected,
                                      const std::string& desired) = 0;
  /// True where the key was there.
  virtual bool erase(const std::string& key) = 0;
  /// Sets `key` where it is absent, and the store erases it by itself once this client is gone: so who holds it lives.
  /// Returns the value afterwards, the holder's.
  virtual std::string claim(const std::string& key, const std::string& value) = 0;
  /// Gives up: calls that are under way in other threads, and all later ones, throw PeerError.
  virtual void close() = 0;

  /// It does as try_wait(), but throws PeerError naming the missing keys.
  [[nodiscard]] std::vector<std::string> wait(std::span<const std::string> keys, std::chrono::milliseconds timeout);
  [[nodiscard]] std::string wait(const std::string& key, std::chrono::milliseconds timeout);
};

}  // namespace trainyard::rendezvous
