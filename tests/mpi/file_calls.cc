// SPDX-License-Identifier: Apache-2.0
// Files of MPI as programs use them, beyond what ROMIO's own tests do: what one rank has written,
// the others read, by a view, a shared pointer or POSIX. Each scene leaves its file and says what
// it saw, the same in each run.
#include <fcntl.h>
#include <mpi.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace {

int rank = 0;
int ranks = 0;
// Open MPI's ROMIO crashes in collective calls that do not block.
bool has_collective_requests = true;

// What the ranks saw in sum: 0 where nobody saw anything wrong.
void say(const char* what, long mine) {
  long all = 0;
  MPI_Reduce(&mine, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%s: %ld\n", what, all);
}

MPI_File open_file(const char* name, int mode = MPI_MODE_CREATE | MPI_MODE_RDWR,
                   MPI_Info info = MPI_INFO_NULL) {
  MPI_File file;
  if (MPI_File_open(MPI_COMM_WORLD, name, mode, info, &file) != MPI_SUCCESS) {
    printf("cannot open %s\n", name);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return file;
}

char byte_of(int writer, long at) { return static_cast<char>(writer * 37 + at * 11 + at / 251); }

std::vector<char> bytes_of(int writer, std::size_t size) {
  std::vector<char> bytes(size);
  for (std::size_t at = 0; at < size; ++at) bytes[at] = byte_of(writer, static_cast<long>(at));
  return bytes;
}

long differing(const std::vector<char>& bytes, int writer) {
  long count = 0;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    if (bytes[at] != byte_of(writer, static_cast<long>(at))) ++count;
  }
  return count;
}

// Records of all ranks in turn.
constexpr int kRecord = 47008;
constexpr int kRecords = 12;

void view_records(MPI_File file, int owner) {
  MPI_Datatype record, row, tiled;
  MPI_Type_contiguous(kRecord, MPI_BYTE, &record);
  MPI_Type_vector(kRecords, 1, ranks, record, &row);
  MPI_Type_create_resized(row, 0, MPI_Aint{kRecord} * ranks * kRecords, &tiled);
  MPI_Type_commit(&tiled);
  MPI_File_set_view(file, MPI_Offset{kRecord} * owner, MPI_BYTE, tiled, "native", MPI_INFO_NULL);
  MPI_Type_free(&tiled);
  MPI_Type_free(&row);
  MPI_Type_free(&record);
}

// sync - barrier - sync, after which each rank sees what all have written (MPI 4.0, 14.6.1).
void sync_all(MPI_File file) {
  MPI_File_sync(file);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File_sync(file);
}

void strided() {
  MPI_File file = open_file("strided");
  MPI_Status status;
  int count = 0;
  view_records(file, rank);
  const std::vector<char> mine = bytes_of(rank, std::size_t{kRecord} * kRecords);
  MPI_File_write_all(file, mine.data(), static_cast<int>(mine.size()), MPI_BYTE, &status);
  MPI_Get_count(&status, MPI_BYTE, &count);
  say("strided: bytes written", count);
  sync_all(file);
  const int other = (rank + 1) % ranks;
  view_records(file, other);
  std::vector<char> back(mine.size());
  MPI_File_read_all(file, back.data(), static_cast<int>(back.size()), MPI_BYTE, &status);
  MPI_Get_count(&status, MPI_BYTE, &count);
  say("strided: bytes read", count);
  say("strided: wrong", differing(back, other));
#ifndef OPEN_MPI  // OMPIO's collective reads count what lies beyond the end
  MPI_File_read_all(file, back.data(), static_cast<int>(back.size()), MPI_BYTE, &status);
  MPI_Get_count(&status, MPI_BYTE, &count);
  say("strided: bytes read at the end", count);
#endif
  MPI_File_close(&file);
}

// Closed by all and opened again, a file is as it was written, for POSIX too.
void reopened() {
  MPI_File file = open_file("strided", MPI_MODE_RDONLY);
  MPI_Offset size = 0;
  MPI_File_get_size(file, &size);
  say("reopened: size", size);
  std::vector<char> piece(kRecord);
  long wrong = 0;
  for (int at = 0; at < kRecords; ++at) {
    const MPI_Offset place = MPI_Offset{kRecord} * (at * ranks + rank);
    MPI_File_read_at_all(file, place, piece.data(), kRecord, MPI_BYTE, MPI_STATUS_IGNORE);
    for (int byte = 0; byte < kRecord; ++byte) {
      wrong += piece[static_cast<std::size_t>(byte)] != byte_of(rank, long{at} * kRecord + byte);
    }
  }
  say("reopened: wrong", wrong);
  MPI_File_close(&file);
  const int descriptor = open("strided", O_RDONLY);
  say("POSIX: bytes read", pread(descriptor, piece.data(), kRecord, off_t{kRecord} * rank));
  say("POSIX: wrong", differing(piece, rank));
  close(descriptor);
}

// In atomic mode a write is there for all when it has returned.
void atomic() {
  MPI_File file = open_file("atomic");
  MPI_File_set_atomicity(file, 1);
  int is_atomic = 0;
  MPI_File_get_atomicity(file, &is_atomic);
  say("atomic: mode", is_atomic);
  std::vector<char> bytes(200000);
  for (int writer = 0; writer < ranks; ++writer) {
    if (rank == writer) {
      memset(bytes.data(), writer + 1, bytes.size());
      MPI_File_write_at(file, 0, bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE,
                        MPI_STATUS_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_read_at(file, 0, bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE,
                     MPI_STATUS_IGNORE);
    long wrong = 0;
    for (const char byte : bytes) wrong += byte != writer + 1;
    say("atomic: wrong", wrong);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_File_close(&file);
}

void shared_pointer() {
  MPI_File file = open_file("ordered");
  const std::vector<char> mine = bytes_of(rank, 1000 + 100 * static_cast<std::size_t>(rank));
  MPI_File_write_ordered(file, mine.data(), static_cast<int>(mine.size()), MPI_BYTE,
                         MPI_STATUS_IGNORE);
  MPI_Offset at = 0;
  MPI_File_get_position_shared(file, &at);
  say("ordered: position", at);
  sync_all(file);
  MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
  std::vector<char> back(mine.size());
  MPI_File_read_ordered(file, back.data(), static_cast<int>(back.size()), MPI_BYTE,
                        MPI_STATUS_IGNORE);
  say("ordered: wrong", differing(back, rank));
  MPI_File_close(&file);
  // The order is open, but each record is there once.
  file = open_file("counted");
  const int records = 25;
  for (int at_record = 0; at_record < records; ++at_record) {
    MPI_File_write_shared(file, "0123456789abcdef", 16, MPI_BYTE, MPI_STATUS_IGNORE);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Offset size = 0;
  MPI_File_get_size(file, &size);
  say("shared: size", size);
  MPI_File_close(&file);
}

void sizes() {
  MPI_File file = open_file("sized");
  const std::vector<char> mine = bytes_of(rank, 3000);
  MPI_File_write_at_all(file, MPI_Offset{3000} * rank, mine.data(), 3000, MPI_BYTE,
                        MPI_STATUS_IGNORE);
  MPI_Offset size = 0;
  MPI_File_preallocate(file, MPI_Offset{1} << 20);
  MPI_File_get_size(file, &size);
  say("preallocated: size", size);
  std::vector<char> back(3000);
  MPI_File_read_at(file, MPI_Offset{3000} * rank, back.data(), 3000, MPI_BYTE, MPI_STATUS_IGNORE);
  say("preallocated: wrong", differing(back, rank));
  MPI_File_preallocate(file, 1000);
  MPI_File_get_size(file, &size);
  say("preallocated less: size", size);
  MPI_File_set_size(file, 5000);
  MPI_File_get_size(file, &size);
  say("cut: size", size);
  MPI_File_set_size(file, 700000);
  int count = 0;
  MPI_Status status;
  MPI_File_read_at_all(file, 4000, back.data(), 3000, MPI_BYTE, &status);
  MPI_Get_count(&status, MPI_BYTE, &count);
  long set = 0;
  for (std::size_t at = 1000; at < back.size(); ++at) set += back[at] != 0;
  say("longer: bytes read", count);
  say("longer: bytes that are not zero", set);
  MPI_File_close(&file);
  file = open_file("preallocated");
  MPI_File_preallocate(file, 3 << 20);
  MPI_File_close(&file);
}

void not_blocking() {
  MPI_File file = open_file("later");
  const int size = 300000;
  const std::vector<char> mine = bytes_of(rank, size);
  MPI_Request requests[2];
  MPI_File_iwrite_at(file, MPI_Offset{size} * rank, mine.data(), size, MPI_BYTE, &requests[0]);
  const auto write = has_collective_requests ? MPI_File_iwrite_at_all : MPI_File_iwrite_at;
  write(file, MPI_Offset{size} * (ranks + rank), mine.data(), size, MPI_BYTE, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  sync_all(file);
  const int other = (rank + 1) % ranks;
  std::vector<char> first(size), second(size);
  MPI_File_iread_at(file, MPI_Offset{size} * other, first.data(), size, MPI_BYTE, &requests[0]);
  const auto read = has_collective_requests ? MPI_File_iread_at_all : MPI_File_iread_at;
  read(file, MPI_Offset{size} * (ranks + other), second.data(), size, MPI_BYTE, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  say("not blocking: wrong", differing(first, other) + differing(second, other));
  view_records(file, rank);
  const std::vector<char> records = bytes_of(rank, kRecord * 2);
  MPI_File_write_all_begin(file, records.data(), kRecord * 2, MPI_BYTE);
  MPI_File_write_all_end(file, records.data(), MPI_STATUS_IGNORE);
  MPI_File_seek(file, 0, MPI_SEEK_SET);
  std::vector<char> back(kRecord * 2);
  MPI_File_read_all_begin(file, back.data(), kRecord * 2, MPI_BYTE);
  MPI_File_read_all_end(file, back.data(), MPI_STATUS_IGNORE);
  say("split: wrong", differing(back, rank));
  MPI_File_close(&file);
}

// A two-dimensional array with a block for each rank, beside rows that nobody writes.
void blocks() {
  MPI_File file = open_file("blocks");
  // Beyond the end of a file ROMIO, when it sieves, writes into the gaps what its buffer happened
  // to hold.
  MPI_File_set_size(file, 1 << 20);
  const int whole[2] = {60 * ranks + 7, 500};
  const int mine[2] = {60, 480};
  const int start[2] = {60 * rank, 11};
  MPI_Datatype block;
  MPI_Type_create_subarray(2, whole, mine, start, MPI_ORDER_C, MPI_INT, &block);
  MPI_Type_commit(&block);
  MPI_File_set_view(file, 512, MPI_INT, block, "native", MPI_INFO_NULL);
  std::vector<int> cells(60 * 480, rank + 1);
  MPI_File_write_all(file, cells.data(), 60 * 480, MPI_INT, MPI_STATUS_IGNORE);
  MPI_File_write_at(file, 0, cells.data(), 10, MPI_INT, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
  MPI_Type_free(&block);
}

void modes_and_errors() {
  MPI_File file;
  int kind = 0;
  MPI_Error_class(MPI_File_open(MPI_COMM_WORLD, "nothing", MPI_MODE_RDONLY, MPI_INFO_NULL, &file),
                  &kind);
  say("missing file", kind == MPI_ERR_NO_SUCH_FILE);
  file = open_file("passing", MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_DELETE_ON_CLOSE);
  MPI_File_write_ordered(file, "x", 1, MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
  say("deleted on close", access("passing", F_OK));
  MPI_File_open(MPI_COMM_WORLD, "viewed", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  say("a view of nothing", MPI_File_set_view(file, 0, MPI_BYTE, MPI_DATATYPE_NULL, "native",
                                             MPI_INFO_NULL) != MPI_SUCCESS);
  MPI_File_close(&file);
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "cb_buffer_size", "1048576");
  MPI_Info_set(info, "romio_cb_write", "enable");
  file = open_file("added", MPI_MODE_CREATE | MPI_MODE_WRONLY, info);
  MPI_Info_free(&info);
  MPI_File_write_at_all(file, 10 * rank, "0123456789", 10, MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
  file = open_file("added", MPI_MODE_APPEND | MPI_MODE_WRONLY);
  MPI_Offset at = 0;
  MPI_File_get_position(file, &at);
  say("appended at", at);
  if (rank == 0) MPI_File_write(file, "tail", 4, MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
}

// One file of each rank alone.
void alone() {
  const std::string name = "alone." + std::to_string(rank);
  MPI_File file;
  MPI_File_open(MPI_COMM_SELF, name.c_str(), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  const std::vector<char> mine = bytes_of(rank, 100000);
  MPI_File_write_all(file, mine.data(), 100000, MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
}

}  // namespace

int main(int count, char** words) {
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  has_collective_requests = count < 2 || strcmp(words[1], "no-collective-requests") != 0;
  for (void (*scene)() : {strided, reopened, atomic, shared_pointer, sizes, not_blocking, blocks,
                          modes_and_errors, alone}) {
    scene();
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return 0;
}
