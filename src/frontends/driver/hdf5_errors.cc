// SPDX-License-Identifier: Apache-2.0
#include "frontends/driver/hdf5_errors.h"

#include <H5Epublic.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"

namespace cairn::driver {
namespace {

// What dlopen() answers for the object that has the address, without loading anything; null where
// the dynamic linker knows none.
class CallersLibrary {
 public:
  explicit CallersLibrary(const void* caller) {
    Dl_info info{};
    link_map* map = nullptr;
    if (dladdr1(caller, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0) return;
    CAIRN_DCHECK(map != nullptr);
    // The program itself has no name in the list of the dynamic linker.
    handle_ = dlopen(map->l_name[0] != '\0' ? map->l_name : nullptr, RTLD_LAZY | RTLD_NOLOAD);
  }
  ~CallersLibrary() {
    if (handle_ != nullptr) dlclose(handle_);
  }
  CallersLibrary(const CallersLibrary&) = delete;
  CallersLibrary& operator=(const CallersLibrary&) = delete;

  void* find(const char* name) const { return handle_ == nullptr ? nullptr : dlsym(handle_, name); }
  // HDF5 keeps the number of an error class in a variable. Negative: it has none of that name.
  hid_t number(const char* name) const {
    const auto* place = static_cast<const hid_t*>(find(name));
    return place == nullptr ? -1 : *place;
  }

 private:
  void* handle_ = nullptr;
};

}  // namespace

void push_error(const void* caller, FailureKind kind, const char* text) {
  const CallersLibrary library(caller);
  const auto push = reinterpret_cast<decltype(&::H5Epush2)>(library.find("H5Epush2"));
  const hid_t all = library.number("H5E_ERR_CLS_g");
  const hid_t major = library.number(kind.major);
  const hid_t minor = library.number(kind.minor);
  if (push == nullptr || all < 0 || major < 0 || minor < 0) return;
  push(H5E_DEFAULT, __FILE__, "cairn", __LINE__, all, major, minor, "%s", text);
}

void push_system_error(const void* caller, FailureKind kind, const char* text) {
  const int error = errno;
  char whole[2 * PATH_MAX];
  snprintf(whole, sizeof whole, "%s, errno = %d, error message = '%s'", text, error,
           strerror(error));
  push_error(caller, kind, whole);
}

void* function_of_caller(const void* caller, const char* name) {
  return CallersLibrary(caller).find(name);
}

}  // namespace cairn::driver
