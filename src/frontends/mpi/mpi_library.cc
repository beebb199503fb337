// SPDX-License-Identifier: Apache-2.0
#include "frontends/mpi/mpi_library.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <string.h>

#include <atomic>

#include "base/check.h"

namespace cairn {
namespace {

// The library that contains the code at `address`, without loading it; null where there is none.
void* library_at(const void* address) {
  Dl_info info{};
  link_map* map = nullptr;
  if (::dladdr1(address, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0 ||
      map == nullptr) {
    return nullptr;
  }
  return ::dlopen(map->l_name, RTLD_NOLOAD | RTLD_LAZY);
}

// Looks names up in the library that has PMPI_File_open, and counts what is missing.
class Symbols {
 public:
  explicit Symbols(void* library) : library_(library) {}

  template <typename Function>
  void find(Function*& place, const char* name) {
    find_if_any(place, name);
    is_complete_ = is_complete_ && place != nullptr;
  }
  template <typename Function>
  void find_if_any(Function*& place, const char* name) {
    place = reinterpret_cast<Function*>(::dlsym(library_, name));
  }
  // The program may have the object that counts, a copy that the linker has made for it.
  MpiHandle address(const char* name) {
    void* found = ::dlsym(RTLD_DEFAULT, name);
    if (found == nullptr) found = ::dlsym(library_, name);
    is_complete_ = is_complete_ && found != nullptr;
    return reinterpret_cast<MpiHandle>(found);
  }
  bool is_complete() const { return is_complete_; }

 private:
  void* library_;
  bool is_complete_ = true;
};

// Libraries of MPI 5's own interface have other handles. That they are, only their name says: they
// have the same functions.
bool is_of_standard_abi(const void* function) {
  Dl_info info{};
  return ::dladdr(function, &info) == 0 || info.dli_fname == nullptr ||
         strstr(info.dli_fname, "libmpi_abi.so") != nullptr;
}

enum class Family { kUnknown, kMpich, kOpenMpi };

// What a library says of itself first. A wrapper around an MPI quotes that one's words behind its
// own, and has other handles.
Family family_of(void* library) {
  auto* const version =
      reinterpret_cast<int (*)(char*, int*)>(::dlsym(library, "PMPI_Get_library_version"));
  constexpr std::size_t kVersionBytes = 8192;  // MPI_MAX_LIBRARY_VERSION_STRING
  char text[kVersionBytes] = "";
  int length = 0;
  if (version == nullptr || version(text, &length) != 0) return Family::kUnknown;
  const auto begins_with = [&](const char* words) {
    return strncmp(text, words, strlen(words)) == 0;
  };
  if (begins_with("Open MPI ")) return Family::kOpenMpi;
  constexpr const char* kMpichs[] = {"MPICH Version", "Intel(R) MPI", "MVAPICH",
                                     "MPI VERSION    : CRAY MPICH version"};
  for (const char* words : kMpichs) {
    if (begins_with(words)) return Family::kMpich;
  }
  return Family::kUnknown;
}

void find_functions(MpiLibrary* mpi, Symbols& symbols) {
  symbols.find(mpi->initialized, "PMPI_Initialized");
  symbols.find(mpi->comm_size, "PMPI_Comm_size");
  symbols.find(mpi->comm_test_inter, "PMPI_Comm_test_inter");
  symbols.find(mpi->comm_create, "PMPI_Comm_create");
  symbols.find(mpi->comm_free, "PMPI_Comm_free");
  symbols.find(mpi->comm_group, "PMPI_Comm_group");
  symbols.find(mpi->group_translate_ranks, "PMPI_Group_translate_ranks");
  symbols.find(mpi->group_size, "PMPI_Group_size");
  symbols.find(mpi->file_get_info, "PMPI_File_get_info");
  symbols.find(mpi->group_free, "PMPI_Group_free");
  symbols.find(mpi->allreduce, "PMPI_Allreduce");
  symbols.find(mpi->info_create, "PMPI_Info_create");
  symbols.find(mpi->info_dup, "PMPI_Info_dup");
  symbols.find(mpi->info_get, "PMPI_Info_get");
  symbols.find(mpi->info_set, "PMPI_Info_set");
  symbols.find(mpi->info_free, "PMPI_Info_free");
  symbols.find(mpi->type_size, "PMPI_Type_size_x");
  symbols.find(mpi->type_get_extent, "PMPI_Type_get_extent");
  symbols.find(mpi->type_get_envelope, "PMPI_Type_get_envelope");
  symbols.find(mpi->type_get_contents, "PMPI_Type_get_contents");
  symbols.find(mpi->type_free, "PMPI_Type_free");
  symbols.find_if_any(mpi->type_get_envelope_c, "PMPI_Type_get_envelope_c");
  symbols.find_if_any(mpi->type_get_contents_c, "PMPI_Type_get_contents_c");
}

bool fill(MpiLibrary* mpi, void* library) {
  const Family family = family_of(library);
  if (family == Family::kUnknown) return false;
  Symbols symbols(library);
  find_functions(mpi, symbols);
  mpi->is_open_mpi = family == Family::kOpenMpi;
  CAIRN_CHECK(library != nullptr);
  if (mpi->is_open_mpi) {
    mpi->no_ranks = symbols.address("ompi_mpi_comm_null");
    mpi->world = symbols.address("ompi_mpi_comm_world");
    mpi->no_info = symbols.address("ompi_mpi_info_null");
    mpi->no_type = symbols.address("ompi_mpi_datatype_null");
    mpi->long_type = symbols.address("ompi_mpi_long");
    mpi->minimum = symbols.address("ompi_mpi_op_min");
    mpi->first_combiner = 0;
    mpi->order_c = 0;
  } else {
    mpi->no_ranks = 0x04000000;
    mpi->world = 0x44000000;
    mpi->no_info = 0x1c000000;
    mpi->no_type = 0x0c000000;
    mpi->long_type = 0x4c000807;
    mpi->minimum = 0x58000002;
    mpi->first_combiner = 1;
    mpi->order_c = 56;
  }
  return symbols.is_complete();
}

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

const MpiLibrary* MpiLibrary::behind(const void* caller) {
  pthread_mutex_lock(&lock);
  if (!is_looked_up) {
    is_looked_up = true;
    void* const open = next_mpi_function("PMPI_File_open", caller);
    void* const library = open == nullptr ? nullptr : library_at(open);
    last_resort.store(library);
    is_known = library != nullptr && !is_of_standard_abi(open) && fill(&found, library);
    CAIRN_CHECK(!is_known || found.no_info != 0);
  }
  pthread_mutex_unlock(&lock);
  return is_known ? &found : nullptr;
}

void* next_mpi_function(const char* name, const void* caller) {
  if (void* const next = ::dlsym(RTLD_NEXT, name); next != nullptr) return next;
  if (void* const next = foreign_in(library_at(caller), name); next != nullptr) return next;
  if (last_resort.load() == nullptr) last_resort.store(any_library());
  return foreign_in(last_resort.load(), name);
}

}  // namespace cairn
