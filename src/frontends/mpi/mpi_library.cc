// SPDX-License-Identifier: Apache-2.0
#include "frontends/mpi/mpi_library.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <string.h>

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
  bool has(const char* name) const { return ::dlsym(library_, name) != nullptr; }
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

bool is_of_mpich_abi(void* library) {
  auto* const version =
      reinterpret_cast<int (*)(char*, int*)>(::dlsym(library, "PMPI_Get_library_version"));
  constexpr std::size_t kVersionBytes = 8192;  // MPI_MAX_LIBRARY_VERSION_STRING
  char text[kVersionBytes] = "";
  int length = 0;
  if (version == nullptr || version(text, &length) != 0) return false;
  return strstr(text, "MPICH") != nullptr || strstr(text, "Intel(R) MPI") != nullptr ||
         strstr(text, "MVAPICH") != nullptr;
}

void find_functions(MpiLibrary* mpi, Symbols& symbols) {
  symbols.find(mpi->comm_size, "PMPI_Comm_size");
  symbols.find(mpi->comm_create_group, "PMPI_Comm_create_group");
  symbols.find(mpi->comm_free, "PMPI_Comm_free");
  symbols.find(mpi->comm_group, "PMPI_Comm_group");
  symbols.find(mpi->group_translate_ranks, "PMPI_Group_translate_ranks");
  symbols.find(mpi->group_size, "PMPI_Group_size");
  symbols.find(mpi->file_get_group, "PMPI_File_get_group");
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
  Symbols symbols(library);
  find_functions(mpi, symbols);
  mpi->is_open_mpi = symbols.has("ompi_mpi_comm_world");
  if (mpi->is_open_mpi) {
    mpi->world = symbols.address("ompi_mpi_comm_world");
    mpi->no_info = symbols.address("ompi_mpi_info_null");
    mpi->no_type = symbols.address("ompi_mpi_datatype_null");
    mpi->long_type = symbols.address("ompi_mpi_long");
    mpi->minimum = symbols.address("ompi_mpi_op_min");
    mpi->first_combiner = 0;
    mpi->order_c = 0;
  } else {
    if (!is_of_mpich_abi(library)) return false;
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

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
constinit MpiLibrary found{};
bool is_looked_up = false;
bool is_known = false;

}  // namespace

const MpiLibrary* MpiLibrary::behind(const void* caller) {
  pthread_mutex_lock(&lock);
  if (!is_looked_up) {
    is_looked_up = true;
    void* const open = next_mpi_function("PMPI_File_open", caller);
    void* const library = open == nullptr ? nullptr : library_at(open);
    is_known = library != nullptr && !is_of_standard_abi(open) && fill(&found, library);
    CAIRN_CHECK(!is_known || found.no_info != 0);
  }
  pthread_mutex_unlock(&lock);
  return is_known ? &found : nullptr;
}

void* next_mpi_function(const char* name, const void* caller) {
  if (void* const next = ::dlsym(RTLD_NEXT, name); next != nullptr) return next;
  void* const library = library_at(caller);
  return library == nullptr ? nullptr : ::dlsym(library, name);
}

}  // namespace cairn
