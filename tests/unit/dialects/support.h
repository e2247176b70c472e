#pragma once

#include <fstream>
#include <string>
#include <vector>

#include "dialects/load.h"
#include "support/support.h"
#include "unit/config/error_of.h"

namespace trainyard::dialects {

/// A file of this name and text, loaded by `flag` with what else is given. Errors then begin with the name.
class Files {
 public:
  std::string add(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  /// `text` without the folder's path.
  [[nodiscard]] std::string relative(std::string text) const {
    const std::string path = folder_.path().string() + "/";
    for (size_t at = text.find(path); at != std::string::npos; at = text.find(path)) text.erase(at, path.size());
    return text;
  }
  [[nodiscard]] std::vector<std::string> relative(std::vector<std::string> lines) const {
    for (std::string& line : lines) line = relative(line);
    return lines;
  }

 private:
  test::TemporaryFolder folder_;
};

inline config::Loaded load_file(Files& files, const std::string& name, const std::string& text,
                                const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments{"--config", files.add(name, text)};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return load(arguments);
}

inline std::string error_of_file(const std::string& name, const std::string& text,
                                 const std::vector<std::string>& more = {}) {
  Files files;
  return files.relative(config::error_of([&] { load_file(files, name, text, more); }));
}

}  // namespace trainyard::dialects
