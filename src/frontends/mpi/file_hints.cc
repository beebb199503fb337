// SPDX-License-Identifier: Apache-2.0
#include "frontends/mpi/file_hints.h"

#include <fcntl.h>
#include <linux/stat.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/system_call.h"
#include "frontends/processes/launch_environment.h"

namespace cairn {
namespace {

// The first ones are about collective access.
constexpr const char* kKeys[] = {"romio_cb_write", "romio_cb_read", "romio_ds_write",
                                 "romio_ds_read"};
constexpr unsigned kKeyCount = sizeof kKeys / sizeof kKeys[0];
static_assert(kKeyCount == 4);
// MPI's own, for every MPI.
constexpr const char* kWishes[] = {"collective_buffering", "cb_nodes"};
constexpr const char* kDefault = "automatic";

struct Value {
  bool is_set = false;
  char text[64] = "";
};

Value value_of(const MpiLibrary& mpi, MpiHandle hints, const char* key) {
  Value value;
  int is_set = 0;
  value.is_set =
      mpi.info_get(hints, key, sizeof value.text - 1, value.text, &is_set) == 0 && is_set != 0;
  return value;
}

// ROMIO reads hints from a file too, which Open MPI's does not tell.
bool has_hints_file() {
  if (find_variable(environ, "ROMIO_HINTS") != nullptr) return true;
  struct ::statx about{};
  return sys::statx(AT_FDCWD, "/etc/romio-hints", 0, STATX_TYPE, &about) == 0;
}

}  // namespace

void FileHints::note(const MpiLibrary& mpi, MpiHandle hints) {
  if (mpi.is_no_info(hints)) return;
  for (unsigned index = 0; index < kKeyCount; ++index) {
    if (value_of(mpi, hints, kKeys[index]).is_set) belongs_to_program(1U << index);
  }
  for (const char* key : kWishes) has_wishes_ = has_wishes_ || value_of(mpi, hints, key).is_set;
}

void FileHints::look(const MpiLibrary& mpi, MpiHandle file) {
  MpiHandle hints = 0;
  if (mpi.file_get_info(file, &hints) != 0 || mpi.is_no_info(hints)) return;
  for (unsigned index = 0; index < kKeyCount; ++index) {
    const Value value = value_of(mpi, hints, kKeys[index]);
    const char* const expected = (ours_ >> index & 1) != 0 ? "disable" : kDefault;
    if (value.is_set && strcmp(value.text, expected) != 0) belongs_to_program(1U << index);
  }
  (void)mpi.info_free(&hints);
}

bool FileHints::has_wishes() const {
  return has_wishes_ || (programs_ & kCollective) != 0 || has_hints_file();
}

MpiHandle FileHints::with_ours(const MpiLibrary& mpi, MpiHandle hints, bool is_direct) const {
  CAIRN_CHECK((ours_ & programs_) == 0);
  const unsigned keys = is_direct ? ours_for(mpi) : ours_;
  MpiHandle made = 0;
  if (keys == 0) return hints;
  const bool is_made =
      (mpi.is_no_info(hints) ? mpi.info_create(&made) : mpi.info_dup(hints, &made)) == 0;
  if (!is_made) return hints;
  for (unsigned index = 0; index < kKeyCount; ++index) {
    if ((keys >> index & 1) != 0)
      (void)mpi.info_set(made, kKeys[index], is_direct ? "disable" : kDefault);
  }
  return made;
}

}  // namespace cairn
