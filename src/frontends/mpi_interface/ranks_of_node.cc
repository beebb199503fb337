// SPDX-License-Identifier: Apache-2.0
#include "frontends/mpi_interface/ranks_of_node.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/leading_number.h"

namespace cairn {
namespace {

int number_of(const char* name) {
  const char* const value = ::getenv(name);
  return value == nullptr ? 0 : static_cast<int>(leading_number(value, 10));
}

// How many ranks of this program the launcher has started on this node; 0 where it does not say.
int ranks_here(int all) {
  if (const int open_mpi = number_of("OMPI_COMM_WORLD_LOCAL_SIZE"); open_mpi != 0) return open_mpi;
  if (const int hydra = number_of("MPI_LOCALNRANKS"); hydra != 0) return hydra;
  if (number_of("SLURM_STEP_NUM_NODES") == 1 || all == 1) return all;
  return 0;
}

// Ranks of another program (MPI_Comm_spawn) may be anywhere.
bool are_of_this_world(const MpiLibrary& mpi, const MpiGroup& ranks) {
  MpiGroup world(mpi);
  const int count = ranks.size();
  auto* const places = static_cast<int*>(calloc(static_cast<std::size_t>(count), 2 * sizeof(int)));
  bool are = places != nullptr && world.take(mpi.comm_group, mpi.world);
  for (int index = 0; are && index < count; ++index) places[index] = index;
  are = are && mpi.group_translate_ranks(ranks.handle(), count, places, world.handle(),
                                         places + count) == 0;
  for (int index = 0; are && index < count; ++index) are = places[count + index] >= 0;
  free(places);
  return are;
}

// Without a world there is none to ask for its size: a program may have sessions only.
bool has_world_on_this_node(const MpiLibrary& mpi) {
  int is_there = 0;
  int all = 0;
  return mpi.initialized(&is_there) == 0 && is_there != 0 && mpi.comm_size(mpi.world, &all) == 0 &&
         ranks_here(all) == all;
}

}  // namespace

bool may_ranks_agree() {
  const char* const wish = ::getenv("CAIRN_MPI");
  return wish == nullptr || strcmp(wish, "off") != 0;
}

bool are_on_this_node(const MpiLibrary& mpi, MpiHandle ranks) {
  CAIRN_DCHECK(mpi.value_of(ranks) != mpi.no_ranks);
  int are_two_groups = 0;
  MpiGroup group(mpi);
  return has_world_on_this_node(mpi) && mpi.comm_test_inter(ranks, &are_two_groups) == 0 &&
         are_two_groups == 0 && group.take(mpi.comm_group, ranks) && are_of_this_world(mpi, group);
}

}  // namespace cairn
