#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <variant>

#include "kube/backoff.h"
#include "kube/result.h"

namespace trainyard::kube {

/// Ask for the next page of a list: the first one where the token is empty.
struct AskPage {
  std::string continue_token;
};
/// Watch from where the target is.
struct OpenWatch {};

struct ListWatchAction {
  std::chrono::milliseconds wait{0};
  std::variant<AskPage, OpenWatch> next;
};

/// What a list and watch does next. Listing: page after page; a page that is too old begins the list anew. Watching: an
/// end is followed by a watch from the last version seen; a version that is too old by a list. Errors wait longer each
/// time, with jitter. Pure but for its random numbers.
class ListWatch {
 public:
  /// A server that goes on showing an older state than before so often means it.
  static constexpr int kStaleListsToBelieve = 5;
  /// A version that no watch opens from so often is given up for a new list.
  static constexpr int kWatchFailuresToRelist = 8;

  explicit ListWatch(std::mt19937_64& random) : random_(random) {}

  /// It begins, or begins anew whatever was under way.
  [[nodiscard]] ListWatchAction start();
  /// `continue_token` is the page's: empty for the last one.
  [[nodiscard]] ListWatchAction page_arrived(const std::string& continue_token);
  [[nodiscard]] ListWatchAction page_failed(const ApiError& error);
  [[nodiscard]] ListWatchAction list_is_stale();
  [[nodiscard]] bool believes_stale_lists() const { return stale_lists_ >= kStaleListsToBelieve; }
  /// `was_useful`: it had events, or lasted. No error: the server ended it in order.
  [[nodiscard]] ListWatchAction watch_ended(const std::optional<ApiError>& error, bool was_useful);

 private:
  [[nodiscard]] ListWatchAction relist();

  std::mt19937_64& random_;
  std::string continue_token_;
  int stale_lists_ = 0, watch_failures_ = 0;
  Backoff list_backoff_{std::chrono::milliseconds(200), std::chrono::seconds(30)};
  Backoff watch_backoff_{std::chrono::milliseconds(100), std::chrono::seconds(10)};
};

}  // namespace trainyard::kube
