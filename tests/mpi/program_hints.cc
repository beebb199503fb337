// SPDX-License-Identifier: Apache-2.0
// What a program has said about a file: at open, with a view before, in between. Prints the hints
// that hold then, a line for each way.
#include <mpi.h>

#include <cstdio>
#include <string>

namespace {

int rank = 0;
int ranks = 0;

MPI_Info hint(const char* key, const char* value) {
  MPI_Info hints;
  MPI_Info_create(&hints);
  MPI_Info_set(hints, key, value);
  return hints;
}

// Pieces of one size with gaps of the same size behind the pieces of all ranks.
MPI_Datatype pieces_with_gaps(int bytes, int count) {
  MPI_Datatype piece, mine;
  MPI_Type_vector(count, bytes, bytes * (ranks + 1), MPI_BYTE, &piece);
  const int length = 1;
  const MPI_Aint place = MPI_Aint{bytes} * rank;
  MPI_Type_create_hindexed(1, &length, &place, piece, &mine);
  MPI_Type_commit(&mine);
  return mine;
}

std::string value_of(MPI_File file, const char* key) {
  MPI_Info hints;
  char value[64] = "none";
  int is_set = 0;
  MPI_File_get_info(file, &hints);
  MPI_Info_get(hints, const_cast<char*>(key), 60, value, &is_set);
  MPI_Info_free(&hints);
  return value;
}

void say(const char* what, MPI_File file) {
  if (rank != 0) return;
  printf("%s:", what);
  for (const char* key : {"romio_cb_write", "romio_cb_read", "romio_ds_write", "romio_ds_read"})
    printf(" %s", value_of(file, key).c_str());
  printf("\n");
}

MPI_File opened(const char* name, MPI_Info hints) {
  MPI_File file;
  if (MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, hints, &file) != 0)
    MPI_Abort(MPI_COMM_WORLD, 3);
  return file;
}

void view(MPI_File file, int bytes, MPI_Info hints) {
  MPI_File_set_view(file, 0, MPI_BYTE, pieces_with_gaps(bytes, 8), "native", hints);
}

void set_and_show() {
  const MPI_Info no_sieving = hint("romio_ds_write", "disable");
  const MPI_Info gathered = hint("romio_cb_write", "enable");
  MPI_File file = opened("values", no_sieving);
  view(file, 64, MPI_INFO_NULL);
  say("open, tiny", file);
  view(file, 8192, MPI_INFO_NULL);
  say("open, pieces", file);
  view(file, 64, MPI_INFO_NULL);
  say("open, tiny again", file);
  MPI_File_close(&file);
  file = opened("values", MPI_INFO_NULL);
  view(file, 64, no_sieving);
  view(file, 64, MPI_INFO_NULL);
  say("view before", file);
  MPI_File_close(&file);
  file = opened("values", MPI_INFO_NULL);
  view(file, 8192, MPI_INFO_NULL);
  say("pieces", file);
  MPI_File_set_info(file, no_sieving);
  view(file, 64, MPI_INFO_NULL);
  say("set when direct", file);
  view(file, 8192, MPI_INFO_NULL);
  say("set when direct, pieces", file);
  MPI_File_set_info(file, gathered);
  say("set to gather", file);
  view(file, 8192, MPI_INFO_NULL);
  say("set to gather, pieces", file);
  MPI_File_close(&file);
}

}  // namespace

int main() {
  MPI_Init(nullptr, nullptr);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  set_and_show();
  MPI_Finalize();
  return 0;
}
