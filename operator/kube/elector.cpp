#include "kube/elector.h"

#include <utility>

namespace trainyard::kube {
namespace {

using namespace std::chrono_literals;

constexpr auto kReleaseTimeout = 5s;

Request urgent(Request request, std::chrono::milliseconds timeout) {
  request.priority = Priority::Urgent;
  request.needs_lease = false;
  request.timeout = timeout;
  return request;
}

TimePoint calendar_now() {
  return std::chrono::system_clock::now();
}

}  // namespace

Elector::Elector(Client& client, ElectionSettings settings, OnChange on_change, OnTrouble on_trouble)
    : client_(client),
      election_(std::move(settings)),
      on_change_(std::move(on_change)),
      on_trouble_(std::move(on_trouble)) {}

void Elector::start() {
  client_.loop().post(alive_.guard([this] { turn(); }));
}

void Elector::turn() {
  tell();
  carry_out(election_.turn(EventLoop::now(), calendar_now()));
}

void Elector::carry_out(const Election::Action& action) {
  tell();
  if (std::holds_alternative<Election::Observe>(action)) return observe();
  if (const auto* const write_action = std::get_if<Election::Write>(&action)) return write(*write_action);
  client_.loop().after(std::get<Election::Wait>(action).duration, alive_.guard([this] { turn(); }));
}

void Elector::observe() {
  const auto& settings = election_.settings();
  client_.call(urgent(get(object_path(kLeases, settings.ns, settings.name)), settings.renew_deadline / 2),
               alive_.guard([this](const Result<Json>& reply) {
                 if (!reply && reply.error().kind != ErrorKind::NotFound && on_trouble_) on_trouble_(reply.error());
                 carry_out(election_.observed(reply, EventLoop::now(), calendar_now()));
               }));
}

void Elector::write(const Election::Write& write) {
  const auto& settings = election_.settings();
  Request request = write.is_new ? create(collection_path(kLeases, settings.ns), write.lease)
                                 : replace(object_path(kLeases, settings.ns, settings.name), write.lease);
  client_.call(urgent(std::move(request), settings.renew_deadline / 2),
               alive_.guard([this, sent_at = EventLoop::now()](const Result<Json>& reply) {
                 if (!reply && on_trouble_) on_trouble_(reply.error());
                 carry_out(election_.written(reply, sent_at, EventLoop::now()));
               }));
}

void Elector::tell() {
  const bool leads = is_leader();
  if (leads) set_deadline();
  if (std::exchange(told_, leads) != leads) on_change_(leads);
}

void Elector::set_deadline() {
  client_.loop().cancel(deadline_);
  deadline_ = client_.loop().after(*election_.deadline() - EventLoop::now(), alive_.guard([this] { tell(); }));
}

void Elector::release(std::function<void()> done) {
  alive_.renew();  // what is on its way is not heard of any more, and no turn follows
  client_.loop().cancel(deadline_);
  const auto lease = election_.release(EventLoop::now(), calendar_now());
  tell();
  if (!lease) return client_.loop().post(std::move(done));
  const auto& settings = election_.settings();
  client_.call(urgent(replace(object_path(kLeases, settings.ns, settings.name), *lease), kReleaseTimeout),
               [done = std::move(done)](const Result<Json>&) { done(); });
}

}  // namespace trainyard::kube
