#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace trainyard::rendezvous {

/// What may be kept in one store. A job of 1,000 ranks needs about a thousandth of it.
struct TableLimits {
  size_t keys = size_t{1} << 20;
  size_t bytes = size_t{1} << 28;  ///< keys and values together
};

/// The keys and values of a store, without sockets, threads or a clock. What breaks a limit throws
/// std::invalid_argument and changes nothing. One thread at a time.
class Table {
 public:
  explicit Table(TableLimits limits = {}) : limits_(limits) {}

  [[nodiscard]] const std::string* find(const std::string& key) const;
  void set(const std::string& key, std::string_view value);
  int64_t add(const std::string& key, int64_t delta);
  std::string compare_and_set(const std::string& key, const std::optional<std::string>& expected,
                              std::string_view desired);
  bool erase(const std::string& key);

  [[nodiscard]] size_t size() const { return values_.size(); }
  [[nodiscard]] size_t bytes() const { return bytes_; }

 private:
  TableLimits limits_;
  std::map<std::string, std::string> values_;
  size_t bytes_ = 0;
};

}  // namespace trainyard::rendezvous
