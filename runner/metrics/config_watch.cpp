#include "metrics/config_watch.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <spdlog/spdlog.h>

#include <array>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <system_error>

#include "base/files.h"

namespace trainyard::metrics {
namespace {

constexpr size_t kLargest = size_t{1} << 20;  // as a ConfigMap
constexpr size_t kDigestBytes = 6;            // of a SHA-256: enough to tell one edit from the next

std::string digest_of(const std::string& text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  if (EVP_Digest(text.data(), text.size(), digest.data(), nullptr, EVP_sha256(), nullptr) != 1)
    throw std::runtime_error("SHA-256 failed in the crypto library");
  std::string hex;
  for (size_t i = 0; i < kDigestBytes; ++i) hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

/// What the file is now: "sha256 2c26b46b68ff" or "gone"; "" where that cannot be told.
std::string state_of(const std::string& path) {
  try {
    return "sha256 " + digest_of(read_file(path, kLargest));
  } catch (const std::exception&) {  // also where descriptors run out, which says nothing of the file
    std::error_code error;
    return std::filesystem::exists(path, error) || error ? "" : "gone";
  }
}

}  // namespace

ConfigWatch::ConfigWatch(const std::vector<ConfigFile>& files) {
  for (const ConfigFile& file : files) files_.push_back({file.path, "sha256 " + digest_of(file.text)});
}

std::string ConfigWatch::changed() {
  std::string changed;
  for (const Known& file : files_) {
    const std::string now = state_of(file.path);
    if (now.empty() || now == file.digest) continue;
    changed += fmt::format("{}{} ({})", changed.empty() ? "" : ", ", file.path, now);
  }
  if (changed == told_) return changed;
  told_ = changed;
  if (changed.empty()) {
    spdlog::info("the configuration is again what this run read");
  } else {
    spdlog::warn(
        "the configuration has changed since this run read it: {}; this run goes on with what it read, and the next "
        "start takes what is there then",
        changed);
  }
  return changed;
}

}  // namespace trainyard::metrics
