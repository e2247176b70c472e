#pragma once

#include <stdexcept>

// What readers of a format throw who do not know the name of the file. Who knows it makes an InputError of them.
namespace trainyard::data {

/// The content is not what its format says: it was cut off, changed or made wrongly. The message completes
/// "is damaged: ".
class Damage : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The content may be sound, but nothing here reads its like. The message follows the name of the file.
class NotOffered : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace trainyard::data
