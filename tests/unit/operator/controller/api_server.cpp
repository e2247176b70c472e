#include "unit/operator/controller/api_server.h"

#include <fmt/format.h>

#include <chrono>
#include <stdexcept>

#include "http/listener.h"

namespace trainyard::controller::test {

ApiServer::ApiServer()
    : server_(
          http::listen_on("127.0.0.1:0", "--test"), [this](const http::Request& request) { return answer(request); },
          {}) {}

void ApiServer::prepare(const std::string& request, int status, const std::string& body) {
  const std::lock_guard lock(mutex_);
  answers_[request].push_back({.status = status, .body = body, .content_type = "application/json"});
}

void ApiServer::set_list(const std::string& path, const Json& items) {
  const std::lock_guard lock(mutex_);
  lists_["GET " + path] = {{"metadata", {{"resourceVersion", "100"}}}, {"items", items}};
}

std::string ApiServer::url() const {
  return fmt::format("http://127.0.0.1:{}", server_.port());
}

std::vector<std::string> ApiServer::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

Json ApiServer::body_of(const std::string& request) const {
  const std::lock_guard lock(mutex_);
  const auto found = bodies_.find(request);
  return found == bodies_.end() ? Json() : Json::parse(found->second);
}

http::Response ApiServer::answer(const http::Request& request) {
  if (request.method == "POST" && request.path.ends_with("/events"))
    return {.status = 201, .body = request.body, .content_type = "application/json"};
  const std::lock_guard lock(mutex_);
  const std::string name = fmt::format("{} {}", request.method, request.path);
  requests_.push_back(name);
  bodies_[name] = request.body;
  auto& prepared = answers_[name];
  if (const auto list = lists_.find(name); prepared.empty() && list != lists_.end())
    return {.status = 200, .body = dump(list->second), .content_type = "application/json"};
  if (prepared.empty())
    return {.status = 404, .body = dump(refusal("NotFound", "there is none")), .content_type = "application/json"};
  http::Response response = prepared.front();
  prepared.pop_front();
  return response;
}

Json refusal(const std::string& reason, const std::string& message) {
  return {{"kind", "Status"}, {"status", "Failure"}, {"reason", reason}, {"message", message}};
}

void run_until(kube::EventLoop& loop, const std::function<bool()>& holds) {
  using namespace std::chrono_literals;
  const std::function<void()> look = [&] {
    if (holds()) return loop.stop();
    loop.after(1ms, look);
  };
  const auto limit = loop.after(30s, [] { throw std::runtime_error("it has not come within 30 s"); });
  loop.post(look);
  loop.run();
  loop.cancel(limit);
}

}  // namespace trainyard::controller::test
