// SPDX-License-Identifier: Apache-2.0
// Records of all ranks in turn in one file, written or read by collective calls (h5bench's and
// IOR's strided pattern; 47008 bytes are a record of IOR-hard).
//
//   records FILE write|read RECORDS ROUNDS
//
// Each call moves so many records of each rank. Prints {"ns", "bytes", "wrong"}: the time that the
// slowest rank spent in calls, from the open to the close.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

constexpr int kRecord = 47008;

class Stopwatch {
 public:
  template <typename Call>
  void time(Call call) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    call();
    seconds_ += MPI_Wtime() - begin;
  }
  double seconds() const { return seconds_; }

 private:
  double seconds_ = 0;
};

MPI_Datatype view_of(int records, int ranks) {
  MPI_Datatype record, row, tiled;
  MPI_Type_contiguous(kRecord, MPI_BYTE, &record);
  MPI_Type_vector(records, 1, ranks, record, &row);
  MPI_Type_create_resized(row, 0, MPI_Aint{kRecord} * ranks * records, &tiled);
  MPI_Type_commit(&tiled);
  return tiled;
}

void fill(std::vector<char>* bytes, int rank, int round) {
  unsigned state = static_cast<unsigned>(rank * 7919 + round * 104729 + 1);
  for (char& byte : *bytes) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<char>(state >> 24);
  }
}

}  // namespace

int main(int count, char** words) {
  MPI_Init(&count, &words);
  if (count != 5) MPI_Abort(MPI_COMM_WORLD, 2);
  const bool writes = strcmp(words[2], "write") == 0;
  const int records = atoi(words[3]);
  const int rounds = atoi(words[4]);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Datatype view = view_of(records, ranks);
  std::vector<char> bytes(static_cast<std::size_t>(kRecord) * static_cast<std::size_t>(records));
  std::vector<char> expected(bytes.size());
  const int size = static_cast<int>(bytes.size());
  Stopwatch watch;
  MPI_File file;
  long wrong = 0;
  watch.time([&] {
    const int mode = writes ? MPI_MODE_CREATE | MPI_MODE_WRONLY : MPI_MODE_RDONLY;
    if (MPI_File_open(MPI_COMM_WORLD, words[1], mode, MPI_INFO_NULL, &file) != MPI_SUCCESS)
      MPI_Abort(MPI_COMM_WORLD, 3);
    MPI_File_set_view(file, MPI_Offset{kRecord} * rank, MPI_BYTE, view, "native", MPI_INFO_NULL);
  });
  for (int round = 0; round < rounds; ++round) {
    fill(writes ? &bytes : &expected, rank, round);
    watch.time([&] {
      const int result =
          writes ? MPI_File_write_all(file, bytes.data(), size, MPI_BYTE, MPI_STATUS_IGNORE)
                 : MPI_File_read_all(file, bytes.data(), size, MPI_BYTE, MPI_STATUS_IGNORE);
      if (result != MPI_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 4);
    });
    if (!writes) wrong += memcmp(bytes.data(), expected.data(), bytes.size()) != 0;
  }
  watch.time([&] { MPI_File_close(&file); });
  const double mine = watch.seconds();
  double slowest = 0;
  long all_wrong = 0;
  MPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  MPI_Reduce(&wrong, &all_wrong, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("{\"ns\": %.0f, \"bytes\": %.0f, \"wrong\": %ld}\n", slowest * 1e9,
           static_cast<double>(size) * rounds * ranks, all_wrong);
  }
  MPI_Finalize();
  return 0;
}
