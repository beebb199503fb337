// SPDX-License-Identifier: Apache-2.0
#include "frontends/hdf5/library.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "frontends/hdf5/kept_errors.h"

namespace cairn::hdf5 {
namespace {

constinit Library libraries[kLibrariesMax] = {};
constinit pthread_mutex_t slots_lock = PTHREAD_MUTEX_INITIALIZER;

// What dlopen() answers for the object that has the address, without loading anything.
void* library_at(const void* address, const char*& path) {
  Dl_info info = {};
  link_map* map = nullptr;
  if (dladdr1(address, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0) return nullptr;
  CAIRN_DCHECK(map != nullptr);
  path = map->l_name;
  // The program itself has no name in the list of the dynamic linker.
  return dlopen(path[0] != '\0' ? path : nullptr, RTLD_LAZY | RTLD_NOLOAD);
}

// Says in HDF5's own way why the connector is not to be had.
void push_refusal(void* handle, const Hdf5Functions& call, const char* reason, const char* detail) {
  const auto* error_class = static_cast<const hid_t*>(dlsym(handle, "H5E_ERR_CLS_g"));
  const auto* major = static_cast<const hid_t*>(dlsym(handle, "H5E_PLUGIN_g"));
  const auto* minor = static_cast<const hid_t*>(dlsym(handle, "H5E_CANTLOAD_g"));
  if (call.H5Epush2 == nullptr || error_class == nullptr || major == nullptr || minor == nullptr) {
    return;
  }
  call.H5Epush2(H5E_DEFAULT, __FILE__, "H5PLget_plugin_info", __LINE__, *error_class, *major,
                *minor, "%s%s", reason, detail);
}

// ".../site-packages/netcdf4.libs/libhdf5-x.so" becomes ".../site-packages/netCDF4/plugins". Wheels
// have named the first folder in both cases.
void find_filters(const char* path, Library& library) {
  const char* libraries_folder = strcasestr(path, "/netcdf4.libs/");
  if (libraries_folder == nullptr) return;
  char guess[PATH_MAX];
  const int length = static_cast<int>(libraries_folder - path);
  const int written = snprintf(guess, sizeof guess, "%.*s/netCDF4/plugins", length, path);
  if (written <= 0 || static_cast<size_t>(written) >= sizeof guess) return;
  if (realpath(guess, library.filters) == nullptr) library.filters[0] = '\0';
}

template <typename Pointer>
bool find_one(void* handle, Pointer& pointer, const char* name) {
  pointer = reinterpret_cast<Pointer>(dlsym(handle, name));
  return pointer != nullptr;
}

bool find_parallel(void* handle, ParallelFunctions& parallel) {
  return find_one(handle, parallel.H5Pget_fapl_mpio, "H5Pget_fapl_mpio") &&
         find_one(handle, parallel.H5Pget_all_coll_metadata_ops, "H5Pget_all_coll_metadata_ops") &&
         find_one(handle, parallel.H5Pget_dxpl_mpio, "H5Pget_dxpl_mpio") &&
         find_one(handle, parallel.H5Pset_dxpl_mpio, "H5Pset_dxpl_mpio") &&
         ((find_one(handle, parallel.H5VLopen_lib_context, "H5VLopen_lib_context") &&
           find_one(handle, parallel.H5VLclose_lib_context, "H5VLclose_lib_context")) ||
          (find_one(handle, parallel.H5VLstart_lib_state, "H5VLstart_lib_state") &&
           find_one(handle, parallel.H5VLfinish_lib_state, "H5VLfinish_lib_state"))) &&
         (find_one(handle, parallel.H5FD_MPIO_id_g, "H5FD_MPIO_id_g") ||
          find_one(handle, parallel.H5FD_mpio_init, "H5FD_mpio_init"));
}

int slot_of(void* handle) {
  for (int slot = 0; slot < kLibrariesMax; slot++) {
    if (libraries[slot].handle == handle) return slot;
  }
  return -1;
}

int fill_slot(void* handle, const char* path) {
  Hdf5Functions call = {};
  if (const char* missing = find_functions(handle, call)) {
    call.H5Epush2 = reinterpret_cast<decltype(call.H5Epush2)>(dlsym(handle, "H5Epush2"));
    push_refusal(handle, call, "cairn: this HDF5 is too old or incomplete: it lacks ", missing);
    return -1;
  }
  const int slot = slot_of(nullptr);
  if (slot < 0) {
    push_refusal(handle, call, "cairn: other HDF5 libraries of this process have all places of ",
                 "the connector");
    return -1;
  }
  Library& library = libraries[slot];
  CAIRN_DCHECK(library.connector_class == nullptr);
  library.call = call;
  find_filters(path, library);
  library.is_parallel = dlsym(handle, "H5Pset_fapl_mpio") != nullptr;
  if (!library.is_parallel || !find_parallel(handle, library.parallel)) library.parallel = {};
  if (!find_one(handle, library.old_errors.H5Eget_auto1, "H5Eget_auto1") ||
      !find_one(handle, library.old_errors.H5Eset_auto1, "H5Eset_auto1"))
    library.old_errors = {};
  library.default_transfer = static_cast<const hid_t*>(dlsym(handle, "H5P_LST_DATASET_XFER_ID_g"));
  library.handle = handle;
  return slot;
}

// Whether a directory is one of a list that is separated by colons.
bool is_listed(const char* directory, const char* list) {
  const size_t length = strlen(directory);
  while (list != nullptr && *list != '\0') {
    const size_t item = strcspn(list, ":");
    if (item == length && strncmp(list, directory, item) == 0) return true;
    list += item;
    list += *list == ':' ? 1 : 0;
  }
  return false;
}

}  // namespace

Library& library_in_slot(int slot) {
  CAIRN_DCHECK(slot >= 0);
  CAIRN_DCHECK(slot < kLibrariesMax);
  return libraries[slot];
}

int claim_slot(const void* address) {
  const char* path = nullptr;
  void* handle = library_at(address, path);
  if (handle == nullptr) return -1;
  pthread_mutex_lock(&slots_lock);
  const int known = slot_of(handle);
  const int slot = known >= 0 ? known : fill_slot(handle, path);
  pthread_mutex_unlock(&slots_lock);
  // A slot keeps one handle, from its first claim.
  if (known >= 0 || slot < 0) dlclose(handle);
  return slot;
}

void leave_search_path(Library& library) {
  Dl_info info{};
  if (dladdr(&libraries, &info) == 0 || info.dli_fname == nullptr) return;
  char own[PATH_MAX];
  const char* const slash = strrchr(info.dli_fname, '/');
  const auto length = static_cast<size_t>(slash == nullptr ? 0 : slash - info.dli_fname);
  if (length == 0 || length >= sizeof own) return;
  memcpy(own, info.dli_fname, length);
  own[length] = '\0';
  if (is_listed(own, getenv("HDF5_PLUGIN_PATH"))) return;
  const KeptErrors kept(library.call);
  unsigned count = 0;
  if (library.call.H5PLsize(&count) < 0) return;
  for (unsigned at = count; at-- > 0;) {
    char path[PATH_MAX] = "";
    const bool is_own = library.call.H5PLget(at, path, sizeof path) > 0 && strcmp(path, own) == 0;
    if (is_own) library.call.H5PLremove(at);
  }
}

void append_own_filters(Library& library) {
  if (library.filters[0] == '\0') return;
  if (!is_listed(library.filters, getenv("HDF5_PLUGIN_PATH"))) {
    const KeptErrors kept(library.call);
    library.call.H5PLappend(library.filters);
  }
  library.filters[0] = '\0';
}

}  // namespace cairn::hdf5
