#include "rendezvous/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "base/text.h"

namespace trainyard::rendezvous {
namespace {

constexpr size_t kMaxWaitsAConnection = 64;  // a rank has a few threads, each waits once
constexpr int64_t kMaxWaitMilliseconds = std::chrono::milliseconds(std::chrono::hours(24 * 7)).count();

Reply refused(uint32_t request, std::string why) {
  return {request, Reply::Status::Refused, {std::move(why)}};
}

size_t bytes_of(const std::vector<std::string>& keys) {
  size_t bytes = keys.size() * sizeof(std::string);
  for (const std::string& key : keys) bytes += key.size();
  return bytes;
}

bool is_write(Operation operation) {
  return operation != Operation::Get && operation != Operation::Erase;
}

}  // namespace

Answers Engine::handle(ConnectionId connection, const Request& request, TimePoint now) {
  Answers answers;
  try {
    if (request.operation == Operation::Wait) {
      begin_wait(connection, request, now, answers);
      return answers;
    }
    answers.push_back({connection, apply(connection, request)});
    if (is_write(request.operation)) wake(request.keys.front(), answers);
  } catch (const std::invalid_argument& error) {
    answers.push_back({connection, refused(request.id, error.what())});
  }
  return answers;
}

Reply Engine::apply(ConnectionId connection, const Request& request) {
  const std::string& key = request.keys.front();
  Reply reply{request.id, Reply::Status::Done, {}};
  switch (request.operation) {
    case Operation::Set:
      table_.set(key, request.value);
      disown(key);
      break;
    case Operation::Claim:
      if (!table_.find(key)) {
        table_.set(key, request.value);
        owners_[key] = connection;
        owned_by_[connection].insert(key);
      }
      reply.values = {*table_.find(key)};
      break;
    case Operation::Get:
      if (const std::string* const value = table_.find(key))
        reply.values = {*value};
      else
        reply.status = Reply::Status::Absent;
      break;
    case Operation::Add:
      reply.values = {fmt::format("{}", table_.add(key, request.number))};
      break;
    case Operation::CompareAndSet:
      reply.values = {table_.compare_and_set(key, request.expected, request.value)};
      break;
    case Operation::Erase:
      disown(key);
      if (!table_.erase(key)) reply.status = Reply::Status::Absent;
      break;
    case Operation::Wait:
      break;  // begin_wait()
  }
  return reply;
}

void Engine::begin_wait(ConnectionId connection, const Request& request, TimePoint now, Answers& answers) {
  const auto timeout = std::chrono::milliseconds(std::clamp<int64_t>(request.number, 0, kMaxWaitMilliseconds));
  Waiter waiter{connection, request.id, request.keys, now + timeout, bytes_of(request.keys)};
  const auto missing = first_missing(waiter);
  if (!missing) return answers.push_back({connection, found_all(waiter)});
  if (timeout.count() == 0) return answers.push_back({connection, timed_out(waiter)});
  std::set<WaiterId>& others = waiters_of_[connection];
  if (others.size() >= kMaxWaitsAConnection) {
    throw std::invalid_argument(fmt::format("{} waits of one client at once are too many", others.size() + 1));
  }
  if (waiting_bytes_ + waiter.bytes > limits_.bytes) {
    throw std::invalid_argument(
        fmt::format("the waits in this store are for more than {} of keys", human_bytes(limits_.bytes)));
  }
  waiting_bytes_ += waiter.bytes;
  const WaiterId id = next_waiter_++;
  waiter.stands_at = *missing;
  lines_[waiter.keys[*missing]].insert(id);
  deadlines_.emplace(waiter.deadline, id);
  others.insert(id);
  waiters_.emplace(id, std::move(waiter));
}

void Engine::wake(const std::string& key, Answers& answers) {
  if (!table_.find(key)) return;  // a compare-and-set that set nothing
  const auto line = lines_.extract(key);
  if (line.empty()) return;
  for (const WaiterId id : line.mapped()) {
    Waiter& waiter = waiters_.at(id);
    if (const auto missing = first_missing(waiter)) {
      waiter.stands_at = *missing;
      lines_[waiter.keys[*missing]].insert(id);
      continue;
    }
    answers.push_back({waiter.connection, found_all(waiter)});
    forget(id);
  }
}

std::optional<size_t> Engine::first_missing(const Waiter& waiter) const {
  // It goes on from where it stood: what lies before was there when it was passed, and is looked at again last.
  for (size_t i = waiter.stands_at; i < waiter.keys.size(); ++i) {
    if (!table_.find(waiter.keys[i])) return i;
  }
  for (size_t i = 0; i < waiter.stands_at; ++i) {
    if (!table_.find(waiter.keys[i])) return i;
  }
  return std::nullopt;
}

Reply Engine::found_all(const Waiter& waiter) const {
  Reply reply{waiter.request, Reply::Status::Done, {}};
  size_t bytes = 0;
  for (const std::string& key : waiter.keys) {
    reply.values.push_back(*table_.find(key));
    bytes += reply.values.back().size() + sizeof(uint32_t);
    if (bytes > kMaxReplyBytes / 2)
      return refused(waiter.request, "the values are too large for one reply; wait for fewer keys at once");
  }
  return reply;
}

Reply Engine::timed_out(const Waiter& waiter) const {
  Reply reply{waiter.request, Reply::Status::Missing, {}};
  std::ranges::remove_copy_if(waiter.keys, std::back_inserter(reply.values),
                              [&](const std::string& key) { return table_.find(key) != nullptr; });
  return reply;
}

Answers Engine::expire(TimePoint now) {
  Answers answers;
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    const WaiterId id = deadlines_.begin()->second;
    const Waiter& waiter = waiters_.at(id);
    answers.push_back({waiter.connection, timed_out(waiter)});
    leave_line(waiter, id);
    forget(id);
  }
  return answers;
}

void Engine::forget(WaiterId id) {
  const Waiter& waiter = waiters_.at(id);
  waiting_bytes_ -= waiter.bytes;
  deadlines_.erase({waiter.deadline, id});
  if (const auto others = waiters_of_.find(waiter.connection); others != waiters_of_.end()) others->second.erase(id);
  waiters_.erase(id);
}

void Engine::leave_line(const Waiter& waiter, WaiterId id) {
  const auto line = lines_.find(waiter.keys[waiter.stands_at]);
  line->second.erase(id);
  if (line->second.empty()) lines_.erase(line);
}

void Engine::disconnect(ConnectionId connection) {
  const auto waits = waiters_of_.extract(connection);
  if (!waits.empty()) {
    for (const WaiterId id : waits.mapped()) {
      leave_line(waiters_.at(id), id);
      forget(id);
    }
  }
  const auto owned = owned_by_.extract(connection);
  if (owned.empty()) return;
  for (const std::string& key : owned.mapped()) {
    owners_.erase(key);
    table_.erase(key);
  }
}

std::optional<TimePoint> Engine::next_deadline() const {
  return deadlines_.empty() ? std::nullopt : std::optional(deadlines_.begin()->first);
}

void Engine::disown(const std::string& key) {
  const auto owner = owners_.find(key);
  if (owner == owners_.end()) return;
  owned_by_[owner->second].erase(key);
  owners_.erase(owner);
}

}  // namespace trainyard::rendezvous
