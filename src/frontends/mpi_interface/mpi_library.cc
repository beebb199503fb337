// SPDX-License-Identifier: Apache-2.0
#include "frontends/mpi_interface/mpi_library.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "base/check.h"

namespace cairn {
namespace {

// Looks names up in the library of an MPI, and counts what is missing.
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
  symbols.find(mpi->finalized, "PMPI_Finalized");
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

}  // namespace

void* library_with(const void* address) {
  Dl_info info{};
  link_map* map = nullptr;
  if (::dladdr1(address, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0 ||
      map == nullptr) {
    return nullptr;
  }
  return ::dlopen(map->l_name, RTLD_NOLOAD | RTLD_LAZY);
}

bool MpiLibrary::find_with(const void* function) {
  void* const library = library_with(function);
  if (library == nullptr || is_of_standard_abi(function)) return false;
  const Family family = family_of(library);
  if (family == Family::kUnknown) return false;
  Symbols symbols(library);
  find_functions(this, symbols);
  is_open_mpi = family == Family::kOpenMpi;
  if (is_open_mpi) {
    no_ranks = symbols.address("ompi_mpi_comm_null");
    world = symbols.address("ompi_mpi_comm_world");
    no_info = symbols.address("ompi_mpi_info_null");
    no_type = symbols.address("ompi_mpi_datatype_null");
    long_type = symbols.address("ompi_mpi_long");
    minimum = symbols.address("ompi_mpi_op_min");
    first_combiner = 0;
    order_c = 0;
  } else {
    no_ranks = 0x04000000;
    world = 0x44000000;
    no_info = 0x1c000000;
    no_type = 0x0c000000;
    long_type = 0x4c000807;
    minimum = 0x58000002;
    first_combiner = 1;
    order_c = 56;
  }
  CAIRN_DCHECK(no_info != 0 || is_open_mpi);
  return symbols.is_complete();
}

}  // namespace cairn
