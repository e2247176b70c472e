#include "local/progress_inbox.h"

#include <fmt/format.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <system_error>

#include "http/listener.h"

namespace trainyard::local {
namespace {

UniqueFd make_wake() {
  UniqueFd fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!fd.valid()) throw std::system_error(errno, std::system_category(), "eventfd");
  return fd;
}

}  // namespace

ProgressInbox::ProgressInbox()
    : wake_(make_wake()),
      endpoint_(key_,
                [this](const std::string& ns, const std::string& name, const api::ProgressPost& post) {
                  put({ns, name}, post);
                }),
      server_(http::listen_on("127.0.0.1:0", "the progress endpoint"), telemetry::progress_handler(endpoint_),
              http::Limits{.threads = 1}),
      url_(fmt::format("http://127.0.0.1:{}/progress", server_.port())) {
  endpoint_.set_leading(true);
}

void ProgressInbox::take_notice() const {
  eventfd_t count = 0;
  ::eventfd_read(wake_.get(), &count);
}

void ProgressInbox::track(const api::Job& job) {
  endpoint_.track(job.ns, job.name, {job.uid, job.status.restarts.generation}, job.status.progress);
}

void ProgressInbox::put(const JobName& job, const api::ProgressPost& post) {
  const MutexLock lock(mutex_);
  newest_[job] = post;
  ::eventfd_write(wake_.get(), 1);
}

std::optional<api::ProgressPost> ProgressInbox::take(const api::Job& job) {
  const MutexLock lock(mutex_);
  const auto found = newest_.extract({job.ns, job.name});
  return found ? std::optional(found.mapped()) : std::nullopt;
}

}  // namespace trainyard::local
