#pragma once

#include <exception>
#include <string>
#include <system_error>

namespace trainyard {

/// Whether a call failed for want of what a limit or the machine holds back: processes and threads, descriptors, memory,
/// room in a file or on a disk. The user can raise it, and a restart would meet it again.
bool is_shortage(const std::error_code& code);
bool is_shortage(const std::exception& error);  ///< a std::system_error of such a code

/// The code's message; of a shortage what is short, what this process may have of it, and what raises that.
std::string text_with_remedy(const std::error_code& code);

}  // namespace trainyard
