#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "web/http.h"

namespace trainyard::web {

/// A file of a server, as it is asked for.
struct Wanted {
  std::string what;              ///< for messages: "Qwen/Qwen3-0.6B: model.safetensors"
  std::optional<uint64_t> size;  ///< bytes, where the server told
  std::string elsewhere;         ///< what names another place where there is no room: "HF_HOME names another place …"
  /// Its bytes from `from` on, to `sink`, with one try.
  std::function<Answer(uint64_t from, const Sink& sink)> ask;
  /// Throws the error that an answer stands for which is not good.
  std::function<void(const Answer& answer)> refuse;
  /// What of the whole file is not as the server told: "its sha256 is …"; "": nothing.
  std::function<std::string(const std::filesystem::path& file)> difference;
};

/// Where its bytes go: to `incomplete` until all are there and are right, then to `complete`, on the same file system.
struct Target {
  std::filesystem::path complete, incomplete;
};

/// Downloads a file whose lock the caller holds, and goes on from what `incomplete` already has. A connection that is
/// cut is made again, as long as each time something comes. Bytes that are not what the server told of are deleted
/// and asked for once more. Throws as wanted.refuse does, and InputError for wrong bytes and where the disk has no
/// room.
void download(const Wanted& wanted, const Target& target);

/// Bytes of `file`, for a lock's progress; 0 where it is not there.
uint64_t size_on_disk(const std::filesystem::path& file);

}  // namespace trainyard::web
