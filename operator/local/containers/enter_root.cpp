#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "common/unique_fd.h"
#include "local/containers/root.h"
#include "local/manifest/refusal.h"

namespace trainyard::local {
namespace {

[[noreturn]] void refuse(const std::string& action) {
  throw Refusal(
      fmt::format("its volumes cannot be mounted: {}: {}; mounting takes a kernel that allows user namespaces (sysctls "
                  "user.max_user_namespaces above 0, kernel.unprivileged_userns_clone=1, "
                  "kernel.apparmor_restrict_unprivileged_userns=0) "
                  "or root; without either, use a hostPath volume mounted at its own path",
                  action, std::system_category().message(errno)));
}

void check(bool is_done, const std::string& action) {
  if (!is_done) refuse(action);
}

void write_map(const char* path, const std::string& content) {
  const UniqueFd file(::open(path, O_WRONLY | O_CLOEXEC));
  check(file.valid() && ::write(file.get(), content.data(), content.size()) >= 0, path);
}

/// Root needs a mount namespace alone; others get both, in which they are who they are.
void unshare_mounts() {
  if (::geteuid() == 0 && ::unshare(CLONE_NEWNS) == 0) return;
  const uid_t user = ::geteuid();
  const gid_t group = ::getegid();
  check(::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0, "a user namespace");
  write_map("/proc/self/setgroups", "deny");
  write_map("/proc/self/uid_map", fmt::format("{0} {0} 1", user));
  write_map("/proc/self/gid_map", fmt::format("{0} {0} 1", group));
}

/// What a mount was locked with has to be said again when it becomes read-only.
unsigned long locked_flags(const std::string& path) {
  struct statvfs info {};
  if (::statvfs(path.c_str(), &info) != 0) return 0;
  unsigned long flags = 0;
  if (info.f_flag & ST_NOSUID) flags |= MS_NOSUID;
  if (info.f_flag & ST_NODEV) flags |= MS_NODEV;
  if (info.f_flag & ST_NOEXEC) flags |= MS_NOEXEC;
  if (info.f_flag & ST_NOATIME) flags |= MS_NOATIME;
  if (info.f_flag & ST_RELATIME) flags |= MS_RELATIME;
  return flags;
}

/// A mount point of the kind that the source is: where one is there already, it is that.
void make_point(const std::string& path, const std::string& source) {
  struct stat info {};
  check(::stat(source.c_str(), &info) == 0, source);
  if (S_ISDIR(info.st_mode))
    check(::mkdir(path.c_str(), 0755) == 0 || errno == EEXIST, "making " + path);
  else
    check(UniqueFd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644)).valid() ||
              ::access(path.c_str(), F_OK) == 0,
          "making " + path);
}

void bind_mount(const std::string& source, const std::string& path, bool read_only) {
  make_point(path, source);
  check(::mount(source.c_str(), path.c_str(), nullptr, MS_BIND | MS_REC, nullptr) == 0, "binding " + path);
  if (!read_only) return;
  const unsigned long flags = MS_REMOUNT | MS_BIND | MS_RDONLY | locked_flags(path);
  check(::mount(nullptr, path.c_str(), nullptr, flags, nullptr) == 0, "making read-only " + path);
}

void take(const RootStep& step, const std::string& host, const std::string& root) {
  const std::string path = root + step.path;
  switch (step.kind) {
    case RootStep::Kind::Folder:
      check(::mkdir(path.c_str(), 0755) == 0, "making " + step.path);
      break;
    case RootStep::Kind::Link:
      check(::symlink(step.source.c_str(), path.c_str()) == 0, "linking " + step.path);
      break;
    case RootStep::Kind::Bind:
      bind_mount(host + step.source, path, step.read_only);
      break;
  }
}

UniqueFd opened(const std::string& path, int flags) {
  UniqueFd file(::open(path.c_str(), flags | O_CLOEXEC));
  check(file.valid(), path);
  return file;
}

bool are_same(int a, int b) {
  struct stat first {}, second {};
  return ::fstat(a, &first) == 0 && ::fstat(b, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

}  // namespace

void join_root(pid_t pid) {
  const std::string process = fmt::format("/proc/{}", pid);
  const UniqueFd own_users = opened("/proc/self/ns/user", O_RDONLY), users = opened(process + "/ns/user", O_RDONLY),
                 mounts = opened(process + "/ns/mnt", O_RDONLY), root = opened(process + "/root", O_PATH);
  // Nobody may enter the user namespace in which they are. Without root it is another, and gives the right to the rest.
  if (!are_same(own_users.get(), users.get())) check(::setns(users.get(), CLONE_NEWUSER) == 0, "its user namespace");
  check(::setns(mounts.get(), CLONE_NEWNS) == 0, "its mount namespace");
  // Inside a chroot the namespace's root is not the one that was entered.
  check(::fchdir(root.get()) == 0 && ::chroot(".") == 0, "its root");
}

void enter_root(const std::vector<RootStep>& steps, const std::string& staging) {
  unshare_mounts();
  // Refused inside a chroot whose folder is no mount point, and nothing leaks from there either.
  check(::mount(nullptr, "/", nullptr, MS_SLAVE | MS_REC, nullptr) == 0 || errno == EINVAL, "a mount namespace");
  check(::mount("tmpfs", staging.c_str(), "tmpfs", MS_NODEV | MS_NOSUID, "mode=0755") == 0, "a file system in memory");
  const std::string old = staging + "/.host";
  check(::mkdir(old.c_str(), 0700) == 0, "making " + old);
  // Inside a chroot there is nothing to pivot; chroot then does, as nobody is to be locked in.
  const bool is_pivoted = ::syscall(SYS_pivot_root, staging.c_str(), old.c_str()) == 0;
  const std::string host = is_pivoted ? "/.host" : "", root = is_pivoted ? "" : staging;
  for (const RootStep& step : steps) take(step, host, root);
  if (is_pivoted)
    check(::umount2("/.host", MNT_DETACH) == 0, "leaving the machine's root");
  else
    check(::chroot(staging.c_str()) == 0, "changing the root");
  ::rmdir("/.host");
}

}  // namespace trainyard::local
