// SPDX-License-Identifier: Apache-2.0
// A file as the connector has it open, and what all that is opened of it has in common.
//
// Thread safety: HDF5 calls one connector's callbacks one after the other (its one lock, or a
// library that is not thread-safe at all). Holders are counted atomically nevertheless.
// Ownership: each object, each context of wrapping and each call that opens one is a holder. The
// last one gives back the connector below.
#pragma once

#include <atomic>
#include <cstdint>

#include "frontends/hdf5/file_source.h"
#include "frontends/hdf5/library.h"
#include "frontends/hdf5/ranks.h"

namespace cairn::hdf5 {

struct OpenFile;

// The connector remembers something of a dataset, or of a file, for later reads.
class Memory {
 public:
  Memory() = default;
  virtual ~Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
};

// What a library wants back when it wraps an object that it has got from below.
struct WrapContext {
  OpenFile* file;
  // The context of the connector below; null for the native one, which wraps nothing.
  void* lower;
};

// One H5Fopen() or H5Fcreate(). The many small objects of the file need no reference of their own
// to the connector below.
struct OpenFile {
  Library& library;
  // The connector below. One reference, which the file has taken over.
  hid_t connector;
  bool is_native;
  // As given to H5Fopen(); a created file has kReadWrite added.
  unsigned flags;
  // The name as the program gave it. Null where there was no memory for it.
  char* name;
  // One of the two is there: where the regions of its datasets come from, for a file that is only
  // read, or the word that it is written.
  FileSource source;
  WritableFile writable;
  // By which HDF5 reads and writes it, or the connector reads it; -1 where neither has one.
  int descriptor;
  OwnDescriptor own;
  // The others that have opened it together with this process, for a file that is only read.
  Ranks ranks;
  // What the node is to hear of its datasets (dataset_news.h): a program may open one for each
  // read.
  Memory* news;
  // The memory that HDF5 gives the chunks of each dataset; 0 where the program has chosen it
  // (chunk_room.h).
  std::uint64_t chunk_room;
  // How long its closes have waited for the node.
  std::int64_t waited_ns;
  // The program has closed it; datasets may still be open.
  bool is_closed;
  unsigned long number;
  // The other files that the library has open through the connector.
  OpenFile* next;
  // HDF5 asks for a context at every call of the program, so the common one is made once.
  WrapContext context;
  std::atomic<int> holders;

  // Tells of this handle alone: another one of this process may write to the same file, and after
  // an open with SWMR another process may.
  bool is_read_only() const { return flags == 0; }
};

// H5F_ACC_RDWR, whose macro calls a check of versions that may end the program.
inline constexpr unsigned kReadWrite = 0x1;

// What an open file needs to know of the open.
struct FileOpening {
  const char* name;
  unsigned flags;
  hid_t connector;
  bool is_native;
  FileSource source = {};
  FileIdentity identity = {};
  int descriptor = -1;
  OwnDescriptor own = {};
  Ranks ranks = {};
  std::uint64_t chunk_room = 0;
  unsigned long number = 0;  // LowerFile::number()
};

// Returns: a file with one holder, which has taken over a reference to the connector; or null.
OpenFile* make_file(Library& library, FileOpening opening);
void hold(OpenFile& file);
// Objects of different connectors below cannot meet in one call. Each file has an id of its own for
// what may be the same connector.
bool have_same_connector(const OpenFile& one, const OpenFile& other);
void release(OpenFile& file);

}  // namespace cairn::hdf5
