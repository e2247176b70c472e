#include "kube/list_watch.h"

namespace trainyard::kube {

ListWatchAction ListWatch::start() {
  continue_token_.clear();
  stale_lists_ = watch_failures_ = 0;
  return {.next = AskPage{}};
}

ListWatchAction ListWatch::page_arrived(const std::string& continue_token) {
  continue_token_ = continue_token;
  if (!continue_token.empty()) return {.next = AskPage{continue_token}};
  list_backoff_.reset();
  stale_lists_ = watch_failures_ = 0;
  return {.next = OpenWatch{}};
}

ListWatchAction ListWatch::page_failed(const ApiError& error) {
  if (error.kind == ErrorKind::Gone || error.kind == ErrorKind::Invalid) return relist();
  return {list_backoff_.next(random_), AskPage{continue_token_}};
}

ListWatchAction ListWatch::list_is_stale() {
  ++stale_lists_;
  return relist();
}

ListWatchAction ListWatch::watch_ended(const std::optional<ApiError>& error, bool was_useful) {
  if (was_useful) {
    watch_backoff_.reset();
    watch_failures_ = 0;
  }
  if (error && (error->kind == ErrorKind::Gone || error->kind == ErrorKind::Invalid)) return relist();
  if (!error && was_useful) return {.next = OpenWatch{}};
  // A server that is down says nothing about the version.
  if (error && error->kind == ErrorKind::Server && ++watch_failures_ >= kWatchFailuresToRelist) return relist();
  return {watch_backoff_.next(random_), OpenWatch{}};
}

ListWatchAction ListWatch::relist() {
  continue_token_.clear();
  watch_failures_ = 0;
  // At once only the first time: a server whose every list is too old would be asked without a pause.
  const bool is_first = list_backoff_.failures() == 0;
  const auto wait = list_backoff_.next(random_);
  return {is_first ? std::chrono::milliseconds(0) : wait, AskPage{}};
}

}  // namespace trainyard::kube
