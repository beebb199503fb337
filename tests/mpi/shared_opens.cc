// SPDX-License-Identifier: Apache-2.0
// Ranks that are not alike when they open a file: a directory that one has just made, names that
// differ, threads, a handle that is none, and a read of what another rank writes late. A word says
// which. Each ends with status 0, or hangs.
#include <mpi.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace {

int rank = 0;
int ranks = 0;
constexpr int kBytes = 16384;
constexpr int kPieces = 4;

void need(bool is_so, const char* what) {
  if (is_so) return;
  fprintf(stderr, "rank %d: not so: %s\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

MPI_File opened(MPI_Comm comm, const std::string& name) {
  MPI_File file;
  need(MPI_File_open(comm, name.c_str(), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file) ==
           MPI_SUCCESS,
       "the file is open");
  return file;
}

// The pieces of the ranks in turn, those of `place` for this one.
void view(MPI_File file, int place) {
  MPI_Datatype piece;
  MPI_Type_vector(kPieces, kBytes, kBytes * ranks, MPI_BYTE, &piece);
  MPI_Type_commit(&piece);
  need(MPI_File_set_view(file, MPI_Offset{kBytes} * place, MPI_BYTE, piece, "native",
                         MPI_INFO_NULL) == MPI_SUCCESS,
       "the view is set");
  MPI_Type_free(&piece);
}

void write_pieces(MPI_File file, MPI_Comm comm) {
  const std::vector<char> data(std::size_t{kBytes} * kPieces, static_cast<char>('a' + rank));
  view(file, rank);
  need(MPI_File_write_all(file, data.data(), kBytes * kPieces, MPI_BYTE, MPI_STATUS_IGNORE) ==
           MPI_SUCCESS,
       "the pieces are written");
  MPI_Barrier(comm);
}

void new_directory() {
  if (rank == 0) {
    usleep(400000);
    mkdir("made", 0755);
  }
  MPI_File file = opened(MPI_COMM_WORLD, "made/out");
  write_pieces(file, MPI_COMM_WORLD);
  MPI_File_close(&file);
}

// The other name leads to "named" from outside of what is buffered.
void other_names(const char* other_name) {
  MPI_File file = opened(MPI_COMM_WORLD, rank == 0 ? other_name : "named");
  write_pieces(file, MPI_COMM_WORLD);
  MPI_File_close(&file);
}

void several_threads(bool opens_too) {
  std::vector<std::thread> threads;
  std::vector<MPI_Comm> comms(2);
  std::vector<MPI_File> files;
  for (int index = 0; index < 2; ++index) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[index]);
    files.push_back(MPI_FILE_NULL);
    if (!opens_too) files[index] = opened(comms[index], "thread" + std::to_string(index));
  }
  for (int index = 0; index < 2; ++index) {
    threads.emplace_back([&, index] {
      for (int round = 0; round < 20; ++round) {
        // The ranks come to the two files in different orders.
        usleep(static_cast<useconds_t>((index + rank + round) % 2 * 3000));
        if (opens_too) files[index] = opened(comms[index], "thread" + std::to_string(index));
        view(files[index], rank);
        if (opens_too) MPI_File_close(&files[index]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int index = 0; index < 2; ++index) {
    if (!opens_too) MPI_File_close(&files[index]);
    MPI_Comm_free(&comms[index]);
  }
}

void no_file() {
  MPI_File file = opened(MPI_COMM_WORLD, "closed");
  write_pieces(file, MPI_COMM_WORLD);
  MPI_File_close(&file);
  MPI_Comm mine[4];
  for (MPI_Comm& comm : mine) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_File none = MPI_FILE_NULL;
  need(MPI_File_close(&none) != MPI_SUCCESS, "no file cannot be closed");
  need(MPI_File_set_size(MPI_FILE_NULL, 5) != MPI_SUCCESS, "no file has no size");
  for (MPI_Comm& comm : mine) {
    int all = 0;
    need(MPI_Allreduce(&rank, &all, 1, MPI_INT, MPI_MAX, comm) == 0 && all == ranks - 1, "talk");
    MPI_Comm_free(&comm);
  }
}

// Each rank writes its piece, one of them late, and reads the next rank's.
void read_what_comes_late(bool has_view) {
  MPI_File file = opened(MPI_COMM_WORLD, "late");
  MPI_Datatype whole;
  MPI_Type_contiguous(kBytes * ranks, MPI_BYTE, &whole);
  MPI_Type_commit(&whole);
  if (has_view) MPI_File_set_view(file, 0, MPI_BYTE, whole, "native", MPI_INFO_NULL);
  for (int round = 0; round < 3; ++round) {
    std::vector<char> data(kBytes, static_cast<char>('a' + 8 * round + rank));
    const int next = (rank + 1) % ranks;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) usleep(300000);
    MPI_File_write_at_all(file, MPI_Offset{kBytes} * rank, data.data(), kBytes, MPI_BYTE,
                          MPI_STATUS_IGNORE);
    MPI_File_read_at_all(file, MPI_Offset{kBytes} * next, data.data(), kBytes, MPI_BYTE,
                         MPI_STATUS_IGNORE);
    need(data[0] == 'a' + 8 * round + next && data[kBytes - 1] == data[0], "the next one's bytes");
  }
  MPI_File_close(&file);
  MPI_Type_free(&whole);
}

}  // namespace

int main(int count, char** words) {
  const std::string scene = count > 1 ? words[1] : "";
  int given = 0;
  MPI_Init_thread(nullptr, nullptr,
                  scene.rfind("threads", 0) == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &given);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (scene == "directory") new_directory();
  if (scene == "names") other_names(words[2]);
  if (scene == "threads") several_threads(false);
  if (scene == "threads-open") several_threads(true);
  if (scene == "null") no_file();
  if (scene == "late") read_what_comes_late(false);
  if (scene == "late-view") read_what_comes_late(true);
  MPI_Finalize();
  return 0;
}
