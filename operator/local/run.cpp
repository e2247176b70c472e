#include "local/run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <cerrno>
#include <csignal>
#include <list>
#include <set>
#include <system_error>

#include "decide/objects/names.h"
#include "local/addresses.h"
#include "local/caller.h"
#include "local/ids.h"
#include "local/manifest/check.h"
#include "local/manifest/refusal.h"
#include "local/session.h"

namespace trainyard::local {
namespace fs = std::filesystem;
namespace {

/// The folder of one job's run, which no other run may use meanwhile.
class RunFolder {
 public:
  explicit RunFolder(fs::path path) : path_(std::move(path)) {
    std::error_code error;
    for (const char* const part : {"logs", "pods", "root"})
      if (fs::create_directories(path_ / part, error); error)
        throw Refusal(fmt::format("{}: {}; --dir names another folder", (path_ / part).string(), error.message()));
    fs::permissions(path_ / "pods", fs::perms::owner_all);  // Secrets are written there
    lock_ = UniqueFd(::open((path_ / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    if (!lock_.valid() || ::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0)
      throw Refusal(fmt::format("{}: another run uses this folder; --dir names another", path_.string()));
  }
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
  UniqueFd lock_;
};

fs::path folder_of(const RunOptions& options, const std::string& job, bool is_only) {
  if (options.folder.empty()) return fs::absolute("trainyard-run") / job;
  return is_only ? fs::absolute(options.folder) : fs::absolute(options.folder) / job;
}

void add_arguments(api::Job& job, const std::vector<std::string>& arguments) {
  for (auto& [type, replica] : job.spec.replicas)
    for (Json& container : replica.pod_template.at("spec").at("containers"))
      if (text_at(container, "/name") == api::kContainerName)
        for (const std::string& argument : arguments) container["args"].push_back(argument);
}

api::Job ready_job(const Document& document, std::set<int>& ports, Console& console) {
  Json object = document.content;
  object["metadata"].erase("uid");
  api::Job job = api::parse_job(object);
  api::set_defaults(job);
  job.uid = random_uid();
  job.generation = 1;
  job.resource_version = "1";
  job.created = std::chrono::system_clock::now();
  if (job.spec.run_policy.suspend)
    throw Refusal(
        fmt::format("{}: job {} is suspended, and nothing here would resume it; set spec.runPolicy.suspend to false",
                    document.place_of("spec.runPolicy.suspend"), job.name));
  if (decide::is_managed_elsewhere(job))
    throw Refusal(fmt::format("{}: job {} is for {} to run; take spec.runPolicy.managedBy out",
                              document.place_of("spec.runPolicy.managedBy"), job.name, job.spec.run_policy.managed_by));
  for (const std::string& change : take_free_ports(job, ports))
    console.notice(fmt::format("job {}: {}", job.name, change));
  return job;
}

/// The width of the longest name in front of a line.
size_t label_width(const Input& input) {
  size_t width = 0;
  for (const Document& job : input.jobs) width = std::max(width, text_at(job.content, "/metadata/name").size() + 9);
  return width;
}

int code_of(const std::list<JobRun>& jobs, std::optional<int> signal) {
  if (signal) return 128 + *signal;
  for (const JobRun& job : jobs)
    if (const int code = job.exit_code(); code != 0) return code;
  return 0;
}

}  // namespace

int run(const RunOptions& options) {
  Input input = read_input(options.files);
  refuse_invalid(input.jobs);
  Console console(label_width(input));
  for (const std::string& line : input.ignored) console.notice(line);
  for (const Document& job : input.jobs)
    for (const std::string& line : warnings_of(job)) console.notice(line);
  Signals signals;
  ProgressInbox inbox;
  Gpus gpus(gpus_here());
  std::set<int> ports;
  std::list<RunFolder> folders;
  std::list<JobRun> jobs;
  for (const Document& document : input.jobs) {
    api::Job job = ready_job(document, ports, console);
    add_arguments(job, options.arguments);
    folders.emplace_back(folder_of(options, job.name, input.jobs.size() == 1));
    jobs.emplace_back(std::move(job), input, options.decisions, JobPlace{folders.back().path(), console, gpus, inbox});
  }
  Session session(jobs, inbox, signals, console);
  return code_of(jobs, session.run());
}

}  // namespace trainyard::local
