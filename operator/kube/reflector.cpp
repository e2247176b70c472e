#include "kube/reflector.h"

#include <utility>

#include "kube/list_page.h"
#include "kube/reply.h"

namespace trainyard::kube {
namespace {

using namespace std::chrono_literals;

// A watch that ended sooner, without an event, was of no use; to open it again at once would be a busy loop.
constexpr auto kUsefulWatch = 2s;
constexpr auto kListTimeout = 60s;
// The server ends watches itself, each at another time, so that they spread over its replicas again.
constexpr int kWatchSeconds = 300;

}  // namespace

Reflector::Reflector(Client& client, Selection selection, WatchTarget& target)
    : client_(client), selection_(std::move(selection)), target_(target), list_watch_(client.random()) {}

void Reflector::start() {
  carry_out(list_watch_.start());
}

void Reflector::restart() {
  alive_.renew();
  watch_.cancel();
  target_.drop_page();
  has_listed_ = false;
  start();
}

void Reflector::carry_out(const ListWatchAction& action) {
  const auto act = [this, next = action.next] {
    if (const auto* const page = std::get_if<AskPage>(&next)) return ask_page(page->continue_token);
    open_watch();
  };
  client_.loop().after(action.wait, alive_.guard(act));
}

void Reflector::ask_page(const std::string& continue_token) {
  Request request = get(
      with_query(collection_path(selection_.resource, selection_.ns), {{"limit", std::to_string(kPageSize)},
                                                                       {"continue", continue_token},
                                                                       {"labelSelector", selection_.label_selector},
                                                                       {"fieldSelector", selection_.field_selector}}));
  request.priority = Priority::Bulk;
  request.timeout = kListTimeout;
  client_.fetch(std::move(request),
                alive_.guard([this, is_first = continue_token.empty()](const Result<std::string>& body) {
                  if (!body) return fail_page(body.error());
                  read_page(body.value(), is_first);
                }));
}

void Reflector::read_page(const std::string& body, bool is_first) {
  target_.drop_page();
  const auto page = parse_list_page(body, [this](const Json& item) { target_.stage(item); });
  if (!page)
    return fail_page({.kind = ErrorKind::Server,
                      .message = "a list of " + std::string(selection_.resource.plural) + " is cut off or no list"});
  const auto if_stale =
      list_watch_.believes_stale_lists() ? WatchTarget::IfStale::Believe : WatchTarget::IfStale::Refuse;
  if (is_first && target_.begin_list(page->version, if_stale) == WatchTarget::ListAge::Stale) {
    target_.drop_page();
    return carry_out(list_watch_.list_is_stale());
  }
  target_.take_page();
  if (page->continue_token.empty()) {
    target_.end_list();
    has_listed_ = true;
    if (on_listed_) on_listed_();
  }
  carry_out(list_watch_.page_arrived(page->continue_token));
}

void Reflector::fail_page(const ApiError& error) {
  target_.drop_page();
  if (on_trouble_ && error.kind != ErrorKind::Gone) on_trouble_(error);
  carry_out(list_watch_.page_failed(error));
}

void Reflector::open_watch() {
  const auto seconds = kWatchSeconds + static_cast<int>(client_.random()() % kWatchSeconds);
  std::string path = with_query(collection_path(selection_.resource, selection_.ns),
                                {{"watch", "1"},
                                 {"allowWatchBookmarks", "true"},
                                 {"resourceVersion", std::to_string(target_.version())},
                                 {"timeoutSeconds", std::to_string(seconds)},
                                 {"labelSelector", selection_.label_selector},
                                 {"fieldSelector", selection_.field_selector}});
  opened_ = EventLoop::now();
  had_events_ = false;
  watch_ = client_.watch(
      std::move(path), [this](const WatchEvent& event) { read_event(event); },
      [this](const std::optional<ApiError>& error) { end_watch(error); });
}

void Reflector::read_event(const WatchEvent& event) {
  if (event.type == WatchEvent::Type::Error) {
    watch_.cancel();
    return end_watch(error_of_status(event.object));
  }
  had_events_ = true;
  target_.apply(event, EventLoop::now());
}

void Reflector::end_watch(const std::optional<ApiError>& error) {
  const bool was_useful = had_events_ || EventLoop::now() - opened_ >= kUsefulWatch;
  if (error && on_trouble_ && error->kind != ErrorKind::Gone) on_trouble_(*error);
  carry_out(list_watch_.watch_ended(error, was_useful));
}

}  // namespace trainyard::kube
