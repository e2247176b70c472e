#pragma once

#include <string>

namespace trainyard {

/// A shared library that is opened when something has need of it: a program starts without. It stays open until the
/// process ends, as what it began may still be running.
class Library {
 public:
  /// Opens it by its path, or by its name where the loader looks. Throws InputError with the loader's words.
  explicit Library(const std::string& file);

  /// Throws InputError with the loader's words where it has no such function.
  template <typename Function>
  void find(const char* name, Function*& function) const {
    function = reinterpret_cast<Function*>(address_of(name));
  }
  /// The same, null where there is none.
  template <typename Function>
  void find_if_there(const char* name, Function*& function) const {
    function = reinterpret_cast<Function*>(address_if_there(name));
  }

 private:
  [[nodiscard]] void* address_of(const char* name) const;
  [[nodiscard]] void* address_if_there(const char* name) const;

  void* handle_;
};

}  // namespace trainyard
