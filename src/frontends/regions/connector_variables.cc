// SPDX-License-Identifier: Apache-2.0
// How HDF5 finds Cairn's connector, without a variable that a program or its children could see.
//
// HDF5 reads two variables while it starts: which connector to use, and where plugins lie. The
// answers are ours alone where an HDF5 asks that can load the connector, and where the user has
// named no connector. netCDF4 sets the second variable for its own filters, if nobody has: it finds
// none set, and its directory comes first.
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atomic>
#include <string_view>

#include "base/check.h"
#include "base/leading_number.h"
#include "base/library_file.h"
#include "frontends/client/session.h"
#include "frontends/libc/hook.h"
#include "frontends/processes/launch_environment.h"

namespace cairn {
namespace {

constexpr const char* kConnectorVariable = "HDF5_VOL_CONNECTOR";
constexpr const char* kPathVariable = "HDF5_PLUGIN_PATH";
// Where HDF5 looks unless its builder has chosen something else.
constexpr const char* kUsualDirectory = "/usr/local/hdf5/lib/plugin";
// From this version on the interface of connectors is the one that ours has.
constexpr unsigned kMajor = 1;
constexpr unsigned kMinor = 14;

char connector_name[] = "cairn";

// "HDF5 library version: 1.14.6", in each library.
bool can_load_connectors(const char* version) {
  const char* const number = version == nullptr ? nullptr : strstr(version, ": ");
  if (number == nullptr) return false;
  const char* const dot = strchr(number + 2, '.');
  if (dot == nullptr) return false;
  const std::uint32_t major = leading_number(number + 2, 10);
  return major > kMajor || (major == kMajor && leading_number(dot + 1, 10) >= kMinor);
}

// The connector serves so many libraries of a process. One more would not start if it were told to
// load it.
bool has_place(const void* library) {
  constexpr std::size_t kLibrariesMax = 4;
  static std::atomic<const void*> known[kLibrariesMax];
  for (std::atomic<const void*>& place : known) {
    const void* before = nullptr;
    if (place.compare_exchange_strong(before, library) || before == library) return true;
  }
  return false;
}

// A library, and the directories for plugins that it was built with.
struct BuiltIn {
  const void* base;
  const char* path = nullptr;
};

// HDF5 tells them to nobody before it has read its variables. They are the one text among its
// constants that is a path and ends so.
int look_for_path(dl_phdr_info* library, std::size_t, void* wanted) {
  constexpr char kEnd[] = "plugin";
  auto* found = static_cast<BuiltIn*>(wanted);
  for (unsigned at = 0; at < library->dlpi_phnum; ++at) {
    const ElfW(Phdr)& part = library->dlpi_phdr[at];
    const auto* const begin = reinterpret_cast<const char*>(library->dlpi_addr + part.p_vaddr);
    if (part.p_type != PT_LOAD) continue;
    if (part.p_offset == 0 && static_cast<const void*>(begin) != found->base) return 0;
    if (part.p_flags != PF_R) continue;
    const char* const end = begin + part.p_filesz;
    for (const char* text = begin; text < end;) {
      const auto* hit = static_cast<const char*>(
          memmem(text, static_cast<std::size_t>(end - text), kEnd, sizeof kEnd));
      if (hit == nullptr) break;
      text = hit + sizeof kEnd;
      while (hit > begin && hit[-1] != '\0') --hit;
      if (*hit == '/' && strchr(hit, ' ') == nullptr) found->path = hit;
      if (found->path != nullptr) return 1;
    }
  }
  return 0;
}

const char* built_in_path(const void* address) {
  Dl_info info{};
  if (::dladdr(address, &info) == 0) return kUsualDirectory;
  BuiltIn found{.base = info.dli_fbase};
  ::dl_iterate_phdr(look_for_path, &found);
  return found.path != nullptr ? found.path : kUsualDirectory;
}

// Null where the symbol is that of a library that this one is linked to.
void* own_symbol(void* handle, const void* base, const char* name) {
  void* const symbol = ::dlsym(handle, name);
  Dl_info owner{};
  const bool is_own = symbol != nullptr && ::dladdr(symbol, &owner) != 0 && owner.dli_fbase == base;
  return is_own ? symbol : nullptr;
}

// Whether the code at `address` is of an HDF5 that can load the connector.
bool is_of_hdf5(const void* address) {
  Dl_info info{};
  link_map* library = nullptr;
  if (::dladdr1(address, &info, reinterpret_cast<void**>(&library), RTLD_DL_LINKMAP) == 0 ||
      library == nullptr) {
    return false;
  }
  void* handle = ::dlopen(library->l_name, RTLD_NOLOAD | RTLD_LAZY);
  if (handle == nullptr) return false;
  const auto* version =
      static_cast<const char*>(own_symbol(handle, info.dli_fbase, "H5_lib_vers_info_g"));
  // The linker keeps what somebody refers to, where HDF5 lies in a program or another library.
  // Nothing in HDF5 itself refers to this one, which the connector needs.
  const bool is_whole = own_symbol(handle, info.dli_fbase, "H5PLappend") != nullptr;
  const bool can = is_whole && can_load_connectors(version) && has_place(info.dli_fbase);
  ::dlclose(handle);
  return can;
}

// The directory of the connector, beside this library; empty where it was not built or cannot be
// loaded: HDF5 gives up on a connector that fails, and its users do not all survive that.
struct ConnectorDirectory {
  char path[PATH_MAX] = "";

  ConnectorDirectory() {
    Dl_info info{};
    if (::dladdr(connector_name, &info) == 0 || info.dli_fname == nullptr) return;
    const std::string_view file = info.dli_fname;
    const std::string_view folder = file.substr(0, file.rfind('/') + 1);
    for (const char* place : {"cairn/hdf5", "hdf5"}) {
      char plugin[PATH_MAX];
      const int length = snprintf(path, sizeof path, "%.*s%s", static_cast<int>(folder.size()),
                                  folder.data(), place);
      const int whole = snprintf(plugin, sizeof plugin, "%s/libcairn_hdf5.so", path);
      const bool fits = length < PATH_MAX && whole < PATH_MAX;
      if (fits && plugin_problem(path, plugin) == nullptr) return;
    }
    path[0] = '\0';
  }
};

const char* connector_directory() {
  static const ConnectorDirectory kDirectory;
  return kDirectory.path;
}

bool is_wanted() {
  if (!Session::instance().is_configured()) return false;
  // Says that HDF5 is to load no plugin at all.
  const char* preload = find_variable(environ, "HDF5_PLUGIN_PRELOAD");
  if (preload != nullptr && strcmp(preload, "::") == 0) return false;
  const char* arrays = find_variable(environ, "CAIRN_ARRAYS");
  return arrays == nullptr || strcmp(arrays, "off") != 0;
}

// Lives as long as the process, as what getenv() answers does.
char* with_our_directory(const char* before) {
  const std::size_t bytes = strlen(before) + strlen(connector_directory()) + 2;
  auto* text = static_cast<char*>(malloc(bytes));
  if (text != nullptr) snprintf(text, bytes, "%s:%s", before, connector_directory());
  return text;
}

char* answer(const char* name, char* value, const void* caller) {
  const bool is_path = strcmp(name, kPathVariable) == 0;
  const bool is_chosen = find_variable(environ, kConnectorVariable) != nullptr;
  if (is_chosen || (!is_path && strcmp(name, kConnectorVariable) != 0)) return value;
  const ErrnoKeeper keeper;
  if (!is_wanted() || *connector_directory() == '\0' || !is_of_hdf5(caller)) return value;
  CAIRN_CHECK(is_path || value == nullptr);
  if (!is_path) return connector_name;
  char* const path = with_our_directory(value != nullptr ? value : built_in_path(caller));
  return path != nullptr ? path : value;
}

}  // namespace
}  // namespace cairn

CAIRN_HOOK(char*, getenv, (const char* name)) {
  char* const value =
      environ == nullptr ? nullptr : const_cast<char*>(cairn::find_variable(environ, name));
  if (__builtin_expect(strncmp(name, "HDF5_", 5) != 0, 1)) return value;
  return cairn::answer(name, value, __builtin_return_address(0));
}
