#include "local/containers/strays.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>

namespace trainyard::local {

std::vector<pid_t> children_of_this_process() {
  std::ifstream file(fmt::format("/proc/self/task/{}/children", ::gettid()));
  std::vector<pid_t> children;
  for (pid_t child = 0; file >> child;) children.push_back(child);
  return children;
}

std::string variable_of(pid_t pid, const std::string& name) {
  std::ifstream file(fmt::format("/proc/{}/environ", pid), std::ios::binary);
  for (std::string entry; std::getline(file, entry, '\0');)
    if (entry.starts_with(name + "=")) return entry.substr(name.size() + 1);
  return "";
}

}  // namespace trainyard::local
