// SPDX-License-Identifier: Apache-2.0
// Collective reads of one file by all ranks, of which some have their cells in the tiers and some
// have not. Every rank looks at every cell that it has read.
//
//   collective_reads write FILE         rank 0 makes the file
//   collective_reads patterns FILE      every pattern of what the ranks select, round by round
//   collective_reads late FILE          one rank comes a second later
//   collective_reads dies FILE          one rank is killed before a read
//   collective_reads several FILE       two datasets in one call
//   collective_reads mixed FILE         some reads are collective, some are not
//   collective_reads closed FILE        a dataset outlives the file's id
//   collective_reads held FILE          one rank has another id of the file when all close it
//   collective_reads reused FILE        one transfer property list for all reads
//   collective_reads named FILE         a dataset of a committed datatype
//   collective_reads plist FILE         the transfer properties say what to read
//   collective_reads metadata FILE      metadata is read by all together
//   collective_reads by_one FILE        one rank opens the file for itself, with HDF5's own driver
//
// A round prints a line: the pattern, and whether anybody asked HDF5 for cells.
#include <hdf5.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace {

constexpr hsize_t kRows = 512;
constexpr hsize_t kColumns = 256;
constexpr hsize_t kChunk = 64;

int rank = 0;
int ranks = 1;

void need(bool is_good, const char* what) {
  if (is_good) return;
  fprintf(stderr, "rank %d: %s\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

int cell_at(hsize_t row, hsize_t column, int of) {
  return static_cast<int>(row * kColumns + column) * 2 + of;
}

// What one rank selects of its part of the rows: two pieces, which cannot be served; a box, which
// can; or nothing.
enum Choice { kPieces, kBox, kNothing, kChoices };

struct Selection {
  hid_t file;
  hid_t memory;
  std::vector<hsize_t> rows;
};

Selection select(Choice choice, int part) {
  const hsize_t shape[2] = {kRows, kColumns};
  const hsize_t first = static_cast<hsize_t>(part) * (kRows / 4);
  Selection selection{H5Screate_simple(2, shape, nullptr), -1, {}};
  const auto add = [&](hsize_t row, hsize_t count, H5S_seloper_t how) {
    const hsize_t start[2] = {row, 0};
    const hsize_t size[2] = {count, kColumns};
    H5Sselect_hyperslab(selection.file, how, start, nullptr, size, nullptr);
    for (hsize_t at = 0; at < count; ++at) selection.rows.push_back(row + at);
  };
  if (choice == kNothing) H5Sselect_none(selection.file);
  if (choice == kBox) add(first, kChunk, H5S_SELECT_SET);
  if (choice == kPieces) {
    add(first + 3, 5, H5S_SELECT_SET);
    add(first + 20, 9, H5S_SELECT_OR);
  }
  const hsize_t cells = selection.rows.size() * kColumns;
  selection.memory = H5Screate_simple(1, cells == 0 ? shape : &cells, nullptr);
  if (cells == 0) H5Sselect_none(selection.memory);
  return selection;
}

bool are_right(const std::vector<int>& cells, const Selection& selection, int of) {
  for (std::size_t at = 0; at < selection.rows.size() * kColumns; ++at) {
    if (cells[at] != cell_at(selection.rows[at / kColumns], at % kColumns, of)) return false;
  }
  return true;
}

class File {
 public:
  explicit File(const char* name, bool is_metadata_shared = false) {
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    need(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL) >= 0, "no MPI");
    // A dataset may outlive the file's id, which MPI's driver does not allow by default.
    H5Pset_fclose_degree(access, H5F_CLOSE_WEAK);
    if (is_metadata_shared) H5Pset_all_coll_metadata_ops(access, true);
    file_ = H5Fopen(name, H5F_ACC_RDONLY, access);
    need(file_ >= 0, "cannot open the file");
    H5Pclose(access);
    packed_ = H5Dopen2(file_, "packed", H5P_DEFAULT);
    plain_ = H5Dopen2(file_, "plain", H5P_DEFAULT);
  }
  ~File() {
    H5Dclose(packed_);
    H5Dclose(plain_);
    close();
  }
  void close() {
    if (file_ >= 0) H5Fclose(file_);
    file_ = -1;
  }
  hid_t id() const { return file_; }
  hid_t packed() const { return packed_; }
  hid_t plain() const { return plain_; }

 private:
  hid_t file_;
  hid_t packed_;
  hid_t plain_;
};

hid_t collective() {
  const hid_t transfer = H5Pcreate(H5P_DATASET_XFER);
  H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE);
  return transfer;
}

// Returns whether any rank's HDF5 has read.
bool read(hid_t dataset, int of, Choice choice, hid_t transfer) {
  const Selection selection = select(choice, rank);
  std::vector<int> cells(selection.rows.size() * kColumns + 1, -1);
  need(H5Dread(dataset, H5T_NATIVE_INT, selection.memory, selection.file, transfer, cells.data()) >=
           0,
       "H5Dread fails");
  need(are_right(cells, selection, of), "other cells");
  H5D_mpio_actual_io_mode_t mode = H5D_MPIO_NO_COLLECTIVE;
  H5Pget_mpio_actual_io_mode(transfer, &mode);
  int has_read = mode != H5D_MPIO_NO_COLLECTIVE;
  MPI_Allreduce(MPI_IN_PLACE, &has_read, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  H5Sclose(selection.memory);
  H5Sclose(selection.file);
  return has_read != 0;
}

void read_and_tell(hid_t dataset, int of, Choice choice, const char* what) {
  const hid_t transfer = collective();
  const bool has_read = read(dataset, of, choice, transfer);
  H5Pclose(transfer);
  if (rank == 0) printf("%s: %s\n", what, has_read ? "HDF5 reads" : "nobody asks HDF5");
}

void make_packed(hid_t file, const char* name, hid_t type, hid_t space,
                 const std::vector<int>& cells) {
  const hsize_t chunk[2] = {kChunk, kChunk};
  const hid_t packing = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(packing, 2, chunk);
  H5Pset_shuffle(packing);
  H5Pset_deflate(packing, 6);
  const hid_t dataset = H5Dcreate2(file, name, type, space, H5P_DEFAULT, packing, H5P_DEFAULT);
  need(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, cells.data()) >= 0,
       "cannot write");
  H5Dclose(dataset);
  H5Pclose(packing);
}

void write_file(const char* name) {
  if (rank != 0) return;
  const hid_t file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hsize_t shape[2] = {kRows, kColumns};
  const hid_t space = H5Screate_simple(2, shape, nullptr);
  std::vector<int> cells[2];
  for (int of = 0; of < 2; ++of) {
    cells[of].resize(kRows * kColumns);
    for (hsize_t at = 0; at < cells[of].size(); ++at)
      cells[of][at] = cell_at(at / kColumns, at % kColumns, of);
  }
  const hid_t type = H5Tcopy(H5T_NATIVE_INT);
  H5Tcommit2(file, "type", type, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  make_packed(file, "packed", H5T_NATIVE_INT, space, cells[0]);
  make_packed(file, "named", type, space, cells[0]);
  H5Tclose(type);
  const hid_t plain =
      H5Dcreate2(file, "plain", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  need(H5Dwrite(plain, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, cells[1].data()) >= 0,
       "cannot write");
  H5Dclose(plain);
  H5Sclose(space);
  H5Fclose(file);
}

void read_patterns(const char* name) {
  const File file(name);
  // With more ranks than that, patterns with "-" are left out: waiting ranks of MPICH spin.
  const int choices = ranks < 4 ? kChoices : kNothing;
  // The first that reads a box has to unpack it, while others read pieces.
  int patterns = 1;
  for (int at = 0; at < ranks; ++at) patterns *= choices;
  for (int round = 0; round < 2 * patterns; ++round) {
    std::string pattern;
    int left = round % patterns;
    Choice own = kBox;
    for (int at = 0; at < ranks; ++at, left /= choices) {
      pattern += "pb-"[left % choices];
      if (at == rank) own = static_cast<Choice>(left % choices);
    }
    read_and_tell(file.packed(), 0, own, ("packed " + pattern).c_str());
    read_and_tell(file.plain(), 1, own, ("plain " + pattern).c_str());
  }
}

void come_late(const char* name) {
  const File file(name);
  for (int late = 0; late < ranks; ++late) {
    if (rank == late) sleep(1);
    read_and_tell(file.packed(), 0, kBox, "late");
  }
}

void die(const char* name) {
  const File file(name);
  read_and_tell(file.packed(), 0, kBox, "before");
  fflush(stdout);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == ranks - 1) kill(getpid(), SIGKILL);
  read_and_tell(file.packed(), 0, kBox, "after");
}

void read_several(const char* name) {
  const File file(name);
  for (int choice = 0; choice < kChoices; ++choice) {
    // The ranks differ in what can be served.
    const Selection selection = select(static_cast<Choice>((choice + rank) % kChoices), rank);
    std::vector<int> cells[2];
    void* buffers[2];
    hid_t datasets[2] = {file.packed(), file.plain()};
    hid_t types[2] = {H5T_NATIVE_INT, H5T_NATIVE_INT};
    hid_t memory[2] = {selection.memory, selection.memory};
    hid_t in_file[2] = {selection.file, selection.file};
    for (int of = 0; of < 2; ++of) {
      cells[of].assign(selection.rows.size() * kColumns + 1, -1);
      buffers[of] = cells[of].data();
    }
    const hid_t transfer = collective();
    need(H5Dread_multi(2, datasets, types, memory, in_file, transfer, buffers) >= 0,
         "H5Dread_multi fails");
    for (int of = 0; of < 2; ++of) need(are_right(cells[of], selection, of), "other cells");
    H5Pclose(transfer);
  }
  if (rank == 0) printf("several\n");
}

void read_mixed(const char* name) {
  const File file(name);
  for (int round = 0; round < 40; ++round) {
    // Alone, each rank as often as it likes.
    for (int times = 0; times < (round * 7 + rank * 3) % 4; ++times) {
      const Selection selection = select(kBox, (rank + times) % 4);
      std::vector<int> cells(selection.rows.size() * kColumns);
      need(H5Dread(file.packed(), H5T_NATIVE_INT, selection.memory, selection.file, H5P_DEFAULT,
                   cells.data()) >= 0 &&
               are_right(cells, selection, 0),
           "other cells alone");
    }
    const hid_t transfer = collective();
    // Not what every read may be given: HDF5 is to answer it.
    if (round % 3 == 0) H5Pset_buffer(transfer, 1 << 16, nullptr, nullptr);
    (void)read(round % 2 == 0 ? file.packed() : file.plain(), round % 2, kBox, transfer);
    H5Pclose(transfer);
  }
  if (rank == 0) printf("mixed\n");
}

void read_after_close(const char* name) {
  File file(name);
  read_and_tell(file.packed(), 0, kBox, "open");
  file.close();
  read_and_tell(file.packed(), 0, kBox, "closed");
}

void read_while_one_holds(const char* name) {
  File file(name);
  const hid_t held = rank == 0 ? H5Iget_file_id(file.packed()) : H5I_INVALID_HID;
  file.close();
  read_and_tell(file.packed(), 0, kBox, "held");
  if (held >= 0) H5Fclose(held);
}

void read_with_one_list(const char* name) {
  const File file(name);
  const hid_t transfer = collective();
  for (const Choice choice : {kBox, kPieces, kBox, kBox}) {
    // HDF5 has left word of the read before in the list; that about the mode is looked at.
    const H5D_mpio_actual_io_mode_t none = H5D_MPIO_NO_COLLECTIVE;
    H5Pset(transfer, "actual_io_mode", &none);
    const bool has_read = read(file.packed(), 0, choice, transfer);
    if (rank == 0) printf("reused: %s\n", has_read ? "HDF5 reads" : "nobody asks HDF5");
  }
  H5Pclose(transfer);
}

void read_named(const char* name) {
  const File file(name);
  const hid_t named = H5Dopen2(file.id(), "named", H5P_DEFAULT);
  for (int round = 0; round < 2; ++round) read_and_tell(named, 0, kBox, "named");
  H5Dclose(named);
}

void read_by_properties(const char* name) {
  const File file(name);
  const hid_t transfer = collective();
  const hsize_t start[2] = {static_cast<hsize_t>(rank) * kChunk, 0};
  const hsize_t count[2] = {kChunk, kColumns};
  need(H5Pset_dataset_io_hyperslab_selection(transfer, 2, H5S_SELECT_SET, start, nullptr, count,
                                             nullptr) >= 0,
       "no such property");
  Selection selection = select(kNothing, 0);
  for (hsize_t row = 0; row < kChunk; ++row) selection.rows.push_back(start[0] + row);
  std::vector<int> cells(kChunk * kColumns);
  need(H5Dread(file.packed(), H5T_NATIVE_INT, H5S_BLOCK, H5S_PLIST, transfer, cells.data()) >= 0 &&
           are_right(cells, selection, 0),
       "other cells by properties");
  H5Pclose(transfer);
}

void read_with_shared_metadata(const char* name) {
  const File file(name, true);
  read_and_tell(file.packed(), 0, kBox, "metadata");
}

int error_count = 0;
herr_t count_error(void*) {
  ++error_count;
  return 0;
}

void read_by_one(const char* name) {
  if (rank == 0) {
    // As programs from before HDF5 1.8 hear of errors.
    H5Eset_auto1(count_error, nullptr);
    const hid_t file = H5Fopen(name, H5F_ACC_RDONLY, H5P_DEFAULT);
    const hid_t dataset = H5Dopen2(file, "packed", H5P_DEFAULT);
    const Selection selection = select(kBox, 1);
    std::vector<int> cells(selection.rows.size() * kColumns);
    for (int times = 0; times < 2; ++times) {
      need(H5Dread(dataset, H5T_NATIVE_INT, selection.memory, selection.file, H5P_DEFAULT,
                   cells.data()) >= 0 &&
               are_right(cells, selection, 0),
           "other cells by one");
    }
    H5Dclose(dataset);
    H5Fclose(file);
    need(error_count == 0, "HDF5 tells of errors");
    printf("by one\n");
  }
}

}  // namespace

int main(int count, char** words) {
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const std::map<std::string, std::function<void(const char*)>> parts = {
      {"write", write_file},
      {"patterns", read_patterns},
      {"late", come_late},
      {"dies", die},
      {"several", read_several},
      {"mixed", read_mixed},
      {"closed", read_after_close},
      {"metadata", read_with_shared_metadata},
      {"held", read_while_one_holds},
      {"reused", read_with_one_list},
      {"named", read_named},
      {"plist", read_by_properties},
      {"by_one", read_by_one}};
  need(count == 3 && parts.count(words[1]) == 1, "see the top of this file for the words");
  parts.at(words[1])(words[2]);
  MPI_Finalize();
}
