// SPDX-License-Identifier: Apache-2.0
// A file that HDF5 has open through the driver.
//
// Thread safety: HDF5's lock. Ownership: from open_file() to close_file().
#pragma once

#include <H5FDdevelop.h>
#include <sys/types.h>

namespace cairn::driver {

// Another version of HDF5 may have more in its part, which all of them expect to be the first.
union LibrarysPart {
  H5FD_t file;
  char room[256];
};
static_assert(sizeof(H5FD_t) <= sizeof(LibrarysPart) / 2);

struct DrivenFile {
  LibrarysPart librarys;
  int descriptor;
  dev_t device;
  ino_t inode;
  haddr_t allocated_end;
  haddr_t end;
  // H5repart makes one file of a family of files: what the superblock says of a driver is void.
  bool ignores_driver_info;
  bool ignores_missing_locks;
  // A close and a flush wait until the backing store has all of it.
  bool is_stored_early;
  bool has_changed;  // since it was stored
  char name[1024];   // for messages, cut
};

inline DrivenFile& driven(H5FD_t* file) { return *reinterpret_cast<DrivenFile*>(file); }
inline const DrivenFile& driven(const H5FD_t* file) {
  return *reinterpret_cast<const DrivenFile*>(file);
}

}  // namespace cairn::driver
