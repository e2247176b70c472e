#include "base/library.h"

#include <dlfcn.h>

#include "base/error.h"

namespace trainyard {

Library::Library(const std::string& file) : handle_(::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (!handle_) throw InputError(::dlerror());
}

void* Library::address_of(const char* name) const {
  void* const address = address_if_there(name);
  if (!address) throw InputError(::dlerror());
  return address;
}

void* Library::address_if_there(const char* name) const {
  return ::dlsym(handle_, name);
}

}  // namespace trainyard
