// SPDX-License-Identifier: Apache-2.0
// Where the regions of a file's datasets come from: the descriptor by which HDF5 reads the file,
// and the version of the file that HDF5 has opened.
//
// Not every file has a source. HDF5 may read something else than the file of that name (drivers
// other than the plain one), or hold cells that the file does not have: of a file that the process
// has open for writing, too, and of one that it had open already, in an older version.
//
// Thread safety: any thread; but a source is HDF5's as long as the file is open there.
#pragma once

#include <sys/types.h>

#include "cairn/region_calls.h"
#include "frontends/hdf5/library.h"

namespace cairn::hdf5 {

struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  bool is_known = false;

  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

// A regular file, and its version, as the node's programs see it.
struct FileLook {
  FileIdentity identity;
  CairnFileVersion version{};

  // Follows links.
  static FileLook by_name(const char* name);
  // Whether it has seen the version that HDF5 has opened. That is fresh, too, if it was at the
  // look.
  bool is_of(CairnFileVersion* opened) const;
};

// A file that HDF5 has just opened.
struct LowerFile {
  const Library& library;
  void* file;
  hid_t connector;
  hid_t transfer;

  // The number that HDF5 has for it, the same for all that share what HDF5 holds of it; 0 where it
  // does not tell.
  unsigned long number() const;
  // Its descriptor, or something else where the driver has no descriptors; -1 where it has nothing.
  int descriptor() const;
  // Its descriptor; -1 where that is not one of the regular file.
  int descriptor_of(const FileIdentity& identity) const;
};

struct FileSource {
  int descriptor = -1;
  CairnFileVersion version{};
  FileIdentity identity;

  bool is_open() const { return descriptor >= 0; }

  // `descriptor`: -1 for none. `before`: from before HDF5 opened the file. Closed unless the
  // descriptor is of that file in that version.
  static FileSource of(int descriptor, const FileLook& before);
};

// A descriptor of the connector's own, for a file that HDF5 reads by MPI, which shows none. It
// stays as long as the file is open there: its close ends what the process has locked of the file.
class OwnDescriptor {
 public:
  OwnDescriptor() = default;
  // None where the file of that name is another one now.
  OwnDescriptor(const char* name, const FileIdentity& identity);
  OwnDescriptor(OwnDescriptor&& other) noexcept;
  OwnDescriptor& operator=(OwnDescriptor&& other) noexcept;
  ~OwnDescriptor();

  int get() const { return descriptor_; }

 private:
  int descriptor_ = -1;
};

// A file of this process that HDF5 has opened for writing, for as long as that is so.
class WritableFile {
 public:
  WritableFile() = default;
  // An unknown file may be any.
  explicit WritableFile(const FileIdentity& identity);
  ~WritableFile();
  WritableFile(WritableFile&& other) noexcept;
  WritableFile& operator=(WritableFile&&) = delete;

  static bool is_any(const FileIdentity& identity);

 private:
  FileIdentity identity_;
  bool is_counted_ = false;
};

}  // namespace cairn::hdf5
