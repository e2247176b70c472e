#include "kube/client.h"

#include <fmt/format.h>

#include <utility>

#include "kube/reply.h"

namespace trainyard::kube {
namespace {

constexpr size_t kBulkBeside = 2;  // requests in bulk on their way while others are

}  // namespace

struct Client::Call {
  Request request;
  BodyCallback done;
  Retry retry;
  EventLoop::Clock::time_point first_sent{}, began{};
  bool credentials_were_renewed = false;
  bool counts_as_in_flight = false;
  uint64_t credential = 0;
};

Client::Client(EventLoop& loop, Config config, ClientSettings settings)
    : loop_(loop),
      config_(std::move(config)),
      settings_(std::move(settings)),
      credentials_(loop, config_),
      transfers_(loop) {
  if (settings_.qps > 0) bucket_.emplace(settings_.qps, settings_.burst, EventLoop::now());
}

Client::~Client() = default;

void Client::call(Request request, Callback done) {
  const bool writes = is_write(request.method);
  fetch(std::move(request), [done = std::move(done), writes](Result<std::string> body) {
    if (!body) return done(body.error());
    auto json = parse_body(body.value());
    if (json) return done(std::move(*json));
    done(ApiError{.kind = writes ? ErrorKind::Unknown : ErrorKind::Server, .message = "the answer is no JSON"});
  });
}

void Client::fetch(Request request, BodyCallback done) {
  auto call = std::make_shared<Call>(Call{.request = std::move(request), .done = std::move(done)});
  // libcurl would repeat a write without a body by itself (CurlTransfer::set_up_body).
  if (is_write(call->request.method) && call->request.body.empty()) call->request.body = "{}";
  const bool is_full = pending_ >= settings_.queue_limit || queued_bytes_ > settings_.queue_bytes_limit;
  ++pending_;
  queued_bytes_ += call->request.body.size();
  call->first_sent = EventLoop::now();
  if (is_full && call->request.priority != Priority::Urgent) {
    ApiError error{.kind = ErrorKind::NotSent,
                   .message = fmt::format("{} requests wait for the API server already", pending_ - 1)};
    return loop_.post(alive_.guard([this, call, error] { finish(call, error); }));
  }
  if (call->request.priority == Priority::Urgent) return loop_.post(alive_.guard([this, call] { dispatch(call); }));
  enqueue(call);
}

void Client::enqueue(const CallPointer& call) {
  // What has been sent before has waited longest.
  auto& queue = call->request.priority == Priority::Bulk ? bulk_ : small_;
  call->retry.attempts() > 0 ? queue.push_front(call) : queue.push_back(call);
  if (!std::exchange(is_pumping_, true))
    loop_.post(alive_.guard([this] {
      is_pumping_ = false;
      pump();
    }));
}

void Client::pump() {
  while (may_send_next() && take_token()) {
    const CallPointer call = take_next();
    call->counts_as_in_flight = true;
    concurrency_.begin();
    if (call->request.priority == Priority::Bulk) ++bulk_in_flight_;
    dispatch(call);
  }
}

bool Client::may_send_next() const {
  if (!concurrency_.has_room()) return false;
  if (!small_.empty()) return true;
  const bool is_alone = concurrency_.in_flight() == bulk_in_flight_;
  return !bulk_.empty() && (is_alone || bulk_in_flight_ < kBulkBeside);
}

Client::CallPointer Client::take_next() {
  auto& queue = small_.empty() ? bulk_ : small_;
  CallPointer call = std::move(queue.front());
  queue.pop_front();
  return call;
}

bool Client::take_token() {
  if (!bucket_) return true;
  if (waits_for_token_) return false;
  const auto wait = bucket_->take(EventLoop::now());
  if (wait == EventLoop::Clock::duration::zero()) return true;
  waits_for_token_ = true;
  loop_.after(wait, alive_.guard([this] {
    waits_for_token_ = false;
    pump();
  }));
  return false;
}

void Client::dispatch(const CallPointer& call) {
  call->began = EventLoop::now();
  credentials_.get(alive_.guard([this, call](const Result<Credential>& credential) {
    if (credential) return send(call, credential.value());
    leave_flight(call, Concurrency::Answer::Lost);
    handle_error(call, credential.error(), /*is_final=*/false);
  }));
}

std::vector<std::string> Client::headers_of(const Credential& credential) const {
  std::vector<std::string> headers = credential.headers;
  headers.emplace_back("Accept: application/json");
  headers.push_back("User-Agent: " + settings_.user_agent);
  return headers;
}

void Client::send(const CallPointer& call, const Credential& credential) {
  const Request& request = call->request;
  const bool is_guarded = is_write(request.method) && request.needs_lease && may_write_;
  if (is_guarded && !may_write_()) {
    leave_flight(call, Concurrency::Answer::Lost);
    ApiError error{.kind = ErrorKind::NotSent, .message = "not sent: this operator is not the leader"};
    return loop_.post(alive_.guard([this, call, error] { finish(call, error); }));
  }
  Transfer transfer{.method = request.method,
                    .path = request.path,
                    .body = request.body,
                    .headers = headers_of(credential),
                    .timeout = request.timeout,
                    .body_limit = settings_.body_limit};
  if (is_guarded) transfer.may_send = may_write_;
  if (is_write(request.method)) transfer.headers.push_back("Content-Type: " + request.content_type);
  call->credential = credential.serial;
  ++counts_.requests;
  const auto sent = EventLoop::now();
  transfers_.start(credential.endpoint, std::move(transfer), alive_.guard([this, call, sent](Outcome outcome) {
    observe(call->request.method, call->request.path, outcome.status, sent);
    receive(call, std::move(outcome));
  }));
}

void Client::observe(Method method, std::string_view path, int status, EventLoop::Clock::time_point sent) const {
  if (observer_) observer_({method, path, status, EventLoop::now() - sent});
}

void Client::leave_flight(const CallPointer& call, Concurrency::Answer answer) {
  if (!std::exchange(call->counts_as_in_flight, false)) return;
  concurrency_.end(answer, call->began, EventLoop::now());
  if (call->request.priority == Priority::Bulk) --bulk_in_flight_;
}

void Client::receive(const CallPointer& call, Outcome outcome) {
  const bool is_overload = outcome.status == 429 || outcome.status == 503 || outcome.trouble == Trouble::TimedOut;
  leave_flight(call, is_overload                        ? Concurrency::Answer::Overloaded
                     : outcome.trouble == Trouble::None ? Concurrency::Answer::Served
                                                        : Concurrency::Answer::Lost);
  if (is_success(outcome)) return finish(call, std::move(outcome.body));
  const ApiError error = error_of(outcome, call->request.method);
  if (error.kind == ErrorKind::TooMany) ++counts_.throttled;
  if (error.kind == ErrorKind::Unauthorized) {
    credentials_.reject(call->credential);
    if (!std::exchange(call->credentials_were_renewed, true)) return enqueue(call);
  }
  if (outcome.trouble == Trouble::Untrusted) credentials_.reject(call->credential);
  handle_error(call, error, outcome.trouble == Trouble::Untrusted || outcome.trouble == Trouble::TooLarge);
}

void Client::handle_error(const CallPointer& call, const ApiError& error, bool is_final) {
  const bool is_urgent = call->request.priority == Priority::Urgent;
  const auto elapsed = EventLoop::now() - call->first_sent;
  const auto wait = call->retry.after(error, is_write(call->request.method), is_final || is_urgent, elapsed, random_);
  if (!wait) {
    ++counts_.failed;
    loop_.post(alive_.guard([this] { pump(); }));
    return finish(call, error);
  }
  ++counts_.retries;
  loop_.after(*wait, alive_.guard([this, call] { enqueue(call); }));
  pump();
}

void Client::finish(const CallPointer& call, Result<std::string> result) {
  --pending_;
  queued_bytes_ -= call->request.body.size();
  if (!is_pumping_ && queued() > 0) {
    is_pumping_ = true;
    loop_.post(alive_.guard([this] {
      is_pumping_ = false;
      pump();
    }));
  }
  call->done(std::move(result));
}

Watch Client::watch(std::string path, Watch::OnEvent on_event, Watch::OnEnd on_end) {
  auto state = std::make_shared<Watch::State>(Watch::State{.path = std::move(path),
                                                           .on_event = std::move(on_event),
                                                           .on_end = std::move(on_end),
                                                           .lines = LineSplitter(settings_.watch_line_limit)});
  loop_.post(alive_.guard([this, state] {
    if (state->is_over) return;
    credentials_.get(alive_.guard([this, state](const Result<Credential>& credential) {
      if (state->is_over) return;
      if (!credential) return state->end(credential.error());
      start_watch(state, credential.value());
    }));
  }));
  return Watch(state);
}

void Client::start_watch(const std::shared_ptr<Watch::State>& state, const Credential& credential) {
  Transfer transfer{.path = state->path,
                    .headers = headers_of(credential),
                    .stall = settings_.watch_stall,
                    .body_limit = settings_.body_limit};
  ++counts_.requests;
  auto on_end = [this, state, serial = credential.serial, sent = EventLoop::now()](const Outcome& outcome) {
    observe(Method::Get, state->path, outcome.status, sent);
    if (outcome.status == 401 || outcome.trouble == Trouble::Untrusted) credentials_.reject(serial);
    state->stop = nullptr;
    if (is_success(outcome)) return state->end(std::nullopt);
    state->end(error_of(outcome, Method::Get));
  };
  const uint64_t id = transfers_.start(credential.endpoint, std::move(transfer), alive_.guard(std::move(on_end)),
                                       [state](std::string_view bytes) { state->feed(bytes); });
  state->stop = alive_.guard([this, id] { transfers_.cancel(id); });
}

}  // namespace trainyard::kube
