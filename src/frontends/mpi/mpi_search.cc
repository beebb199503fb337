// SPDX-License-Identifier: Apache-2.0
#include "frontends/mpi/mpi_search.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <string.h>

#include <atomic>

#include "base/check.h"

namespace cairn {
namespace {

// Not ours: the program's own libraries may lead a search back to the hooks.
bool is_foreign(const void* function) {
  static const char kOurs = 0;
  Dl_info here{};
  Dl_info there{};
  return function != nullptr && ::dladdr(&kOurs, &here) != 0 && ::dladdr(function, &there) != 0 &&
         here.dli_fbase != there.dli_fbase;
}

void* foreign_in(void* library, const char* name) {
  void* const function = library == nullptr ? nullptr : ::dlsym(library, name);
  return is_foreign(function) ? function : nullptr;
}

// The name of one of the loaded objects. Libraries are not opened in the walk itself: it holds a
// lock of the loader that comes after the one for opening.
struct Walk {
  int left;
  char name[PATH_MAX];
};
int take_name(dl_phdr_info* object, std::size_t, void* walk) {
  auto* const here = static_cast<Walk*>(walk);
  if (here->left-- > 0) return 0;
  const std::size_t length = strlen(object->dlpi_name);
  if (length < sizeof here->name) memcpy(here->name, object->dlpi_name, length + 1);
  return 1;
}

// The first loaded object that has MPI's files, those of the objects that it needs included.
void* any_library() {
  for (int index = 0;; ++index) {
    Walk walk{index, ""};
    if (::dl_iterate_phdr(take_name, &walk) == 0) return nullptr;
    if (walk.name[0] == '\0') continue;
    void* const library = ::dlopen(walk.name, RTLD_NOLOAD | RTLD_LAZY);
    if (foreign_in(library, "PMPI_File_open") != nullptr) return library;
    if (library != nullptr) (void)::dlclose(library);
  }
}

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
constinit MpiLibrary found{};
bool is_looked_up = false;
bool is_known = false;
// The one that has MPI's files, known or not.
constinit std::atomic<void*> last_resort{nullptr};

}  // namespace

const MpiLibrary* mpi_behind(const void* caller) {
  pthread_mutex_lock(&lock);
  if (!is_looked_up) {
    is_looked_up = true;
    void* const open = next_mpi_function("PMPI_File_open", caller);
    last_resort.store(open == nullptr ? nullptr : library_with(open));
    is_known = open != nullptr && found.find_with(open);
    CAIRN_CHECK(!is_known || found.no_info != 0);
  }
  pthread_mutex_unlock(&lock);
  return is_known ? &found : nullptr;
}

void* next_mpi_function(const char* name, const void* caller) {
  if (void* const next = ::dlsym(RTLD_NEXT, name); next != nullptr) return next;
  if (void* const next = foreign_in(library_with(caller), name); next != nullptr) return next;
  if (last_resort.load() == nullptr) last_resort.store(any_library());
  return foreign_in(last_resort.load(), name);
}

}  // namespace cairn
