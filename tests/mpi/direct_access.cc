// SPDX-License-Identifier: Apache-2.0
// Whether ranks wait for each other in collective accesses: one comes late to each, and the others
// say whether they went on without it. Prints a line for each kind of view, and the hints that the
// file has then.
#include <mpi.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#if MPI_VERSION >= 4 && (!defined(MPICH_NUMVERSION) || MPICH_NUMVERSION >= 50000000)
#define HAS_LARGE_VIEWS 1
#else
#define HAS_LARGE_VIEWS 0
#endif

#ifdef OPEN_MPI
constexpr int kFirstCombiner = 0;
constexpr int kOrderC = 0;
#else
constexpr int kFirstCombiner = 1;
constexpr int kOrderC = 56;
static_assert(MPI_COMM_WORLD == 0x44000000 && MPI_INFO_NULL == 0x1c000000);
static_assert(MPI_DATATYPE_NULL == 0x0c000000);
static_assert(MPI_LONG == 0x4c000807 && MPI_MIN == 0x58000002 && sizeof(MPI_Info) == 4);
#endif
// What src/frontends/mpi_interface relies on.
static_assert(sizeof(MPI_Aint) == 8 && sizeof(MPI_Offset) == 8 && sizeof(MPI_File) == 8);
static_assert(MPI_ORDER_C == kOrderC && MPI_UNDEFINED < 0);
static_assert(MPI_COMBINER_NAMED == kFirstCombiner && MPI_COMBINER_DUP == kFirstCombiner + 1);
static_assert(MPI_COMBINER_CONTIGUOUS == kFirstCombiner + 2);
static_assert(MPI_COMBINER_VECTOR == kFirstCombiner + 3);
static_assert(MPI_COMBINER_HVECTOR == kFirstCombiner + 5);
static_assert(MPI_COMBINER_INDEXED == kFirstCombiner + 6);
static_assert(MPI_COMBINER_HINDEXED == kFirstCombiner + 8);
static_assert(MPI_COMBINER_INDEXED_BLOCK == kFirstCombiner + 9);
static_assert(MPI_COMBINER_STRUCT == kFirstCombiner + 11);
static_assert(MPI_COMBINER_SUBARRAY == kFirstCombiner + 12);
static_assert(MPI_COMBINER_DARRAY == kFirstCombiner + 13);
static_assert(MPI_COMBINER_F90_REAL == kFirstCombiner + 14);
static_assert(MPI_COMBINER_F90_INTEGER == kFirstCombiner + 16);
static_assert(MPI_COMBINER_RESIZED == kFirstCombiner + 17);
static_assert(MPI_COMBINER_HINDEXED_BLOCK == kFirstCombiner + 18);

namespace {

int rank = 0;
int ranks = 0;
// MPI's calls by the names that Fortran's bindings and profiling tools call.
bool by_second_names = false;
// Those that are set when the view is there.
MPI_Info late_hints = MPI_INFO_NULL;
constexpr useconds_t kLate = 700000;

// Writes through a view of so many pieces of a size, those of the ranks in turn.
void access(const char* what, MPI_Datatype type, MPI_Info open_hints, MPI_Info view_hints,
            int bytes) {
  // A few of them show whether a way to start the program makes a difference.
  const char* const wanted = getenv("VIEWS");
  const auto listed_as = [](const std::string& text) { return "," + text + ","; };
  if (wanted != nullptr && listed_as(wanted).find(listed_as(what)) == std::string::npos) return;
  MPI_File file;
  const auto open_file = by_second_names ? PMPI_File_open : MPI_File_open;
  const auto set_view = by_second_names ? PMPI_File_set_view : MPI_File_set_view;
  const auto write_all = by_second_names ? PMPI_File_write_all : MPI_File_write_all;
  open_file(MPI_COMM_WORLD, what, MPI_MODE_CREATE | MPI_MODE_RDWR, open_hints, &file);
  set_view(file, 0, MPI_BYTE, type, "native", view_hints);
  if (late_hints != MPI_INFO_NULL) MPI_File_set_info(file, late_hints);
  const std::vector<char> data(static_cast<std::size_t>(bytes), static_cast<char>('a' + rank));
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == ranks - 1) usleep(kLate);
  const double begin = MPI_Wtime();
  write_all(file, data.data(), bytes, MPI_BYTE, MPI_STATUS_IGNORE);
  int waited = MPI_Wtime() - begin > kLate / 2e6;
  int all = 0;
  MPI_Reduce(&waited, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  char hint[64] = "none";
  MPI_Info hints;
  int is_set = 0;
  MPI_File_get_info(file, &hints);
  MPI_Info_get(hints, const_cast<char*>("romio_cb_write"), 60, hint, &is_set);
  MPI_Info_free(&hints);
  MPI_File_close(&file);
  if (rank == 0) printf("%s: %s, romio_cb_write %s\n", what, all > 0 ? "waits" : "direct", hint);
}

MPI_Datatype pieces_of(int bytes, int count) {
  MPI_Datatype piece, all, mine;
  MPI_Type_contiguous(bytes, MPI_BYTE, &piece);
  MPI_Type_vector(count, 1, ranks, piece, &all);
  int length = 1;
  MPI_Aint place = MPI_Aint{bytes} * rank;
  MPI_Type_create_hindexed(1, &length, &place, all, &mine);
  MPI_Type_commit(&mine);
  return mine;
}

// The same from functions with large counts, where the MPI has them, and can use what they make in
// a view: MPICH 4.0 ends the program.
MPI_Datatype large_pieces_of(int bytes, int count) {
#if HAS_LARGE_VIEWS
  MPI_Datatype piece, all, mine;
  MPI_Type_contiguous_c(bytes, MPI_BYTE, &piece);
  MPI_Type_vector_c(count, 1, ranks, piece, &all);
  MPI_Count length = 1;
  MPI_Count place = MPI_Count{bytes} * rank;
  MPI_Type_create_hindexed_c(1, &length, &place, all, &mine);
  MPI_Type_commit(&mine);
  return mine;
#else
  return pieces_of(bytes, count);
#endif
}

MPI_Datatype box_of(int columns, int whole_columns) {
  const int whole[2] = {8 * ranks, whole_columns};
  const int mine[2] = {8, columns};
  const int start[2] = {8 * rank, 0};
  MPI_Datatype box;
  MPI_Type_create_subarray(2, whole, mine, start, MPI_ORDER_C, MPI_BYTE, &box);
  MPI_Type_commit(&box);
  return box;
}

MPI_Datatype large_box_of(int columns, int whole_columns) {
#if HAS_LARGE_VIEWS
  const MPI_Count whole[2] = {8 * ranks, whole_columns};
  const MPI_Count mine[2] = {8, columns};
  const MPI_Count start[2] = {8 * rank, 0};
  MPI_Datatype box;
  MPI_Type_create_subarray_c(2, whole, mine, start, MPI_ORDER_C, MPI_BYTE, &box);
  MPI_Type_commit(&box);
  return box;
#else
  return box_of(columns, whole_columns);
#endif
}

MPI_Datatype listed(int bytes) {
  std::vector<int> lengths(6, bytes), places;
  for (int at = 0; at < 6; ++at) places.push_back((at * ranks + rank) * (bytes + 16));
  MPI_Datatype made;
  MPI_Type_indexed(6, lengths.data(), places.data(), MPI_BYTE, &made);
  MPI_Type_commit(&made);
  return made;
}

MPI_Info hint(const char* key, const char* value) {
  MPI_Info hints;
  MPI_Info_create(&hints);
  MPI_Info_set(hints, key, value);
  return hints;
}

}  // namespace

extern "C" int access_files(int second_names) {
  by_second_names = second_names != 0;
  MPI_Init(nullptr, nullptr);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const MPI_Info none = MPI_INFO_NULL;
  access("records", pieces_of(47008, 6), none, none, 47008 * 6);
  access("tiny records", pieces_of(64, 600), none, none, 64 * 600);
  access("records of one rank are tiny", pieces_of(rank == 1 ? 64 : 47008, 6), none, none, 384);
  access("rows", box_of(5000, 5000), none, none, 40000);
  access("cut rows", box_of(4999, 5000), none, none, 8 * 4999);
  access("short rows", box_of(100, 5000), none, none, 800);
  access("list", listed(9000), none, none, 54000);
  access("short list", listed(90), none, none, 540);
  access("large counts", large_pieces_of(47008, 6), none, none, 47008 * 6);
  access("large counts of tiny records", large_pieces_of(64, 600), none, none, 64 * 600);
  access("large box", large_box_of(4999, 5000), none, none, 8 * 4999);
  access("large box of short rows", large_box_of(100, 5000), none, none, 800);
  access("hint at open", pieces_of(47008, 6), hint("romio_cb_write", "enable"), none, 47008 * 6);
  access("hint at view", pieces_of(47008, 6), none, hint("romio_cb_write", "enable"), 47008 * 6);
  access("another hint", pieces_of(47008, 6), hint("striping_unit", "65536"), none, 47008 * 6);
  late_hints = hint("romio_cb_write", "enable");
  access("hint after view", pieces_of(47008, 6), none, none, 47008 * 6);
  MPI_Finalize();
  return 0;
}

int main(int count, char** words) {
  return access_files(count > 1 && strcmp(words[1], "second-names") == 0);
}
