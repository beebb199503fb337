// SPDX-License-Identifier: Apache-2.0
// An MPI as MPIwrapper makes it: it quotes the version of MPICH, and has handles of its own. As a
// library, or with PROGRAM defined as the program that uses it. It ends a program that passes
// MPICH's handles.
#include <cstdio>
#include <cstdlib>
#include <cstring>

using Handle = const char*;

extern "C" {
#ifndef PROGRAM
static const char mine[] = "a handle";
Handle wrapped_world() { return mine; }

static int known(Handle handle) {
  if (handle == mine) return 0;
  fprintf(stderr, "no handle of this MPI: %p\n", static_cast<const void*>(handle));
  abort();
}

int PMPI_Get_library_version(char* text, int* length) {
  *length = snprintf(text, 200, "MPIwrapper 2.0.0, wrapping:\nMPICH Version:\t4.0.2\n");
  return 0;
}
int PMPI_Initialized(int* is_there) { return *is_there = 1, 0; }
int PMPI_Comm_size(Handle ranks, int* count) { return *count = 1, known(ranks); }
int PMPI_File_open(Handle ranks, const char*, int, Handle hints, Handle* file) {
  *file = mine;
  return known(ranks) + known(hints);
}
int PMPI_File_close(Handle* file) { return known(*file); }
int MPI_File_open(Handle ranks, const char* name, int mode, Handle hints, Handle* file) {
  return PMPI_File_open(ranks, name, mode, hints, file);
}
int MPI_File_close(Handle* file) { return PMPI_File_close(file); }

// The rest of what is looked for.
#define ELSEWHERE(name) \
  int name(Handle first) { return known(first); }
ELSEWHERE(PMPI_Comm_test_inter)
ELSEWHERE(PMPI_Comm_create)
ELSEWHERE(PMPI_Comm_create_group)
ELSEWHERE(PMPI_Comm_free)
ELSEWHERE(PMPI_Comm_group)
ELSEWHERE(PMPI_Group_translate_ranks)
ELSEWHERE(PMPI_Group_size)
ELSEWHERE(PMPI_Group_free)
ELSEWHERE(PMPI_File_get_info)
ELSEWHERE(PMPI_File_get_group)
ELSEWHERE(PMPI_Allreduce)
ELSEWHERE(PMPI_Info_create)
ELSEWHERE(PMPI_Info_dup)
ELSEWHERE(PMPI_Info_get)
ELSEWHERE(PMPI_Info_set)
ELSEWHERE(PMPI_Info_free)
ELSEWHERE(PMPI_Type_size_x)
ELSEWHERE(PMPI_Type_get_extent)
ELSEWHERE(PMPI_Type_get_envelope)
ELSEWHERE(PMPI_Type_get_contents)
ELSEWHERE(PMPI_Type_free)
#else
Handle wrapped_world();
int MPI_File_open(Handle ranks, const char* name, int mode, Handle hints, Handle* file);
int MPI_File_close(Handle* file);
#endif
}

#ifdef PROGRAM
int main() {
  Handle file = nullptr;
  const int opened = MPI_File_open(wrapped_world(), "wrapped", 0, wrapped_world(), &file);
  const int closed = MPI_File_close(&file);
  return opened + closed + (file == wrapped_world() ? 0 : 2);
}
#endif
