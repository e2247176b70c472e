#pragma once

#include <filesystem>

#include "base/error.h"
#include "common/unique_fd.h"

// Files that a user names. A pipe or a socket is refused: opening it would wait for another process.
namespace trainyard {

/// A file that this process may not read. Nothing says that it is damaged.
class DeniedError : public InputError {
  using InputError::InputError;
};

/// Opens a regular file to read it. Throws DeniedError where that is not permitted, and otherwise InputError, naming the path and the system's reason, where it cannot be
/// opened or is none.
UniqueFd open_to_read(const std::filesystem::path& path);

/// Opens a file to write it: `flags` as of ::open(), O_CLOEXEC is added. Throws InputError for a pipe or a socket of
/// that name; otherwise the descriptor is not valid, and errno says why, where it cannot be opened.
UniqueFd open_to_write(const std::filesystem::path& path, int flags);

}  // namespace trainyard
