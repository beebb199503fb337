// SPDX-License-Identifier: Apache-2.0
// Where the regions of a file's datasets come from: the file itself, in the version that HDF5 has
// opened.
//
// A file that the process also has open for writing is none: HDF5 holds some of what was written,
// and the file does not show it yet.
//
// Thread safety: any thread. Ownership: a source has a descriptor of its own, because that of HDF5
// cannot be asked for with every driver.
#pragma once

#include <sys/types.h>

#include "cairn/region_calls.h"

namespace cairn::hdf5 {

struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  bool is_known = false;

  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

// Follows links. Unknown where the name leads to no regular file.
FileIdentity identity_of(const char* name);

class FileSource {
 public:
  FileSource() = default;
  ~FileSource() { close(); }
  FileSource(FileSource&& other) noexcept;
  FileSource& operator=(FileSource&& other) noexcept;

  // Before HDF5 opens the file for reading alone. Closed where the file is not buffered.
  static FileSource open(const char* name);
  // And after: whether the name still leads to the file. Else the source is closed.
  void confirm(const char* name);

  bool is_open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  const CairnFileVersion& version() const { return version_; }
  const FileIdentity& identity() const { return identity_; }

 private:
  void close();

  int descriptor_ = -1;
  CairnFileVersion version_{};
  FileIdentity identity_;
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
