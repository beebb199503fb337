// SPDX-License-Identifier: Apache-2.0
#include "frontends/driver/file_calls.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <initializer_list>

#include "base/check.h"
#include "cairn/join_node.h"
#include "frontends/driver/node_search.h"

namespace cairn::driver {
namespace {

// libc's, or those of a library that is preloaded.
constinit FileCalls calls{::open,      ::close, ::pread,  ::pwrite, ::fstat,
                          ::ftruncate, ::flock, ::remove, nullptr};
constinit pthread_once_t is_found = PTHREAD_ONCE_INIT;
constinit pthread_once_t is_noted = PTHREAD_ONCE_INIT;
// The directory of the plugin, with a slash behind it.
constinit char folder[PATH_MAX] = "";

template <typename Function>
bool find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  return function != nullptr;
}

bool find_all(void* library, FileCalls& found) {
  return find(library, "open", found.open) && find(library, "close", found.close) &&
         find(library, "pread", found.pread) && find(library, "pwrite", found.pwrite) &&
         find(library, "fstat", found.fstat) && find(library, "ftruncate", found.ftruncate) &&
         find(library, "flock", found.flock) && find(library, "remove", found.remove) &&
         find(library, "cairn_store_file", found.store);
}

// There is a node, and files are not to go past it in silence.
void tell(const NodeSocket& node, const char* reason) {
  fprintf(stderr, "cairn: HDF5 files are not buffered by the node of %s: %s\n", node.path,
          reason == nullptr ? "libcairn_preload.so is missing" : reason);
}

// Stays loaded in any case (-z nodelete).
void* load_library() {
  if (folder[0] == '\0') return nullptr;
  for (const char* place : {"../../libcairn_preload.so", "../libcairn_preload.so"}) {
    char path[PATH_MAX];
    const int length = snprintf(path, sizeof path, "%s%s", folder, place);
    if (length <= 0 || length >= PATH_MAX || ::access(path, R_OK) != 0) continue;
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
  }
  return nullptr;
}

void join_node(const NodeSocket& node) {
  (void)dlerror();
  void* library = load_library();
  if (library == nullptr) return tell(node, dlerror());
  FileCalls found{};
  decltype(&::cairn_join_node) join = nullptr;
  if (!find_all(library, found) || !find(library, "cairn_join_node", join))
    return tell(node, "libcairn_preload.so is of another version");
  if (join(node.path) != 0) return tell(node, "the path of its socket is too long");
  calls = found;
}

void find_calls() {
  // Under `cairn run` the library is there, and its functions are what libc's names mean.
  if (dlsym(RTLD_DEFAULT, "cairn_join_node") != nullptr) return;
  const int saved = errno;
  NodeSocket node;
  if (find_node(node)) join_node(node);
  errno = saved;
}

void find_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&find_folder), &info) == 0 || info.dli_fname == nullptr)
    return;
  const int saved = errno;
  if (realpath(info.dli_fname, folder) == nullptr) folder[0] = '\0';
  errno = saved;
  char* const slash = strrchr(folder, '/');
  if (slash != nullptr) slash[1] = '\0';
}

}  // namespace

void note_place() { pthread_once(&is_noted, find_folder); }

const FileCalls& file_calls() {
  pthread_once(&is_found, find_calls);
  CAIRN_DCHECK(calls.open != nullptr && calls.pwrite != nullptr);
  return calls;
}

QuietCall::QuietCall(const FileCalls& which) : is_needed_(which.store != nullptr) {
  if (!is_needed_) return;
  sigset_t blocked;
  sigfillset(&blocked);
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGABRT})
    sigdelset(&blocked, signal);
  pthread_sigmask(SIG_BLOCK, &blocked, &before_);
}

QuietCall::~QuietCall() {
  if (is_needed_) pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace cairn::driver
