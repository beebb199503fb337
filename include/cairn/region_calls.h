/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks of arrays in the node's tiers, for a connector of an array library in the same process,
 * which finds these functions by dlsym(RTLD_DEFAULT, ...): there are none where the preload library
 * is not. C, and without a header of Cairn's.
 *
 * A region is named by its file and by two words that the connector makes of the array, the chunk's
 * place and its shape. It is of one version of the file: of the size and the times that the file
 * had, as the node knows them, when the connector opened it. A write by any program of the node
 * changes those, before the write returns. All processes of the node share the regions, which leave
 * the tiers as other clean data does.
 *
 * Results are 0 or -errno, errno is left alone. Thread safety: any thread; not in signal handlers.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct CairnFileVersion {
  uint64_t size;
  int64_t mtime_ns;
  int64_t ctime_ns;
  uint64_t cut_writes; /* another one after the death of a process that might be writing it */
  uint64_t is_fresh;   /* 1: of so short a time ago that the next change may leave the same times */
};

struct CairnRegion {
  int32_t descriptor; /* of the file, as the program has it open */
  uint32_t reserved;  /* 0 */
  uint64_t name[2];
  uint64_t bytes; /* of the whole region, more than 0 */
  struct CairnFileVersion version;
};

struct CairnRegionPart {
  uint64_t offset; /* in the region */
  uint64_t bytes;
  void* to;
};

/* The version of the file as it is now. -ENOTSUP: it is not one that is buffered, or the kernel has
 * a say in what it contains. */
int cairn_region_version(int descriptor, struct CairnFileVersion* version);

/* Copies parts of the region that the tiers have. -ENODATA: they have not all of it, and some of
 * the memory may have been written. -ESTALE: the file has another version by now. -ENOTSUP: as
 * above, or somebody has the file open who may write it. */
int cairn_region_read(const struct CairnRegion* region, const struct CairnRegionPart* parts,
                      size_t count);

/* Keeps the region, whose bytes have been read from that version of the file. -EAGAIN: the version
 * was fresh when it was told, so a change since may have left no trace. -ENOSPC: no tier has room
 * for it. -ESTALE, -ENOTSUP: as above. */
int cairn_region_keep(const struct CairnRegion* region, const void* bytes);

/* A box of an array whose cells lie in the file one behind the other, in row-major order. */
struct CairnArrayRead {
  int32_t descriptor; /* as in CairnRegion */
  uint32_t dimensions;
  uint32_t was_kept; /* 1: the box has just been read as a region */
  uint32_t reserved; /* 0 */
  uint64_t cell_bytes;
  uint64_t offset;       /* of the first cell in the file */
  const uint64_t* shape; /* of the array: cells in each dimension */
  const uint64_t* first; /* of the box */
  const uint64_t* count;
};

/* Says that the program reads a box. The node may have other boxes of the array as regions then,
 * which it expects to be read; policy/arrays/file_array.h says what they are named. -ENOTSUP: as
 * above, or an array of more dimensions than the node follows. -EAGAIN: it has no time now. */
int cairn_array_read(const struct CairnArrayRead* read);

/* A box of an array whose chunks lie packed in the file. */
struct CairnPackedRead {
  int32_t descriptor; /* as in CairnRegion */
  uint32_t dimensions;
  uint32_t filter_count;
  uint32_t reserved;       /* 0 */
  const uint32_t* filters; /* by their registered numbers, in the order of packing */
  uint64_t cell_bytes;
  uint64_t token[2];     /* names the dataset in its file */
  const uint64_t* shape; /* of the array: cells in each dimension */
  const uint64_t* chunk; /* of the file */
  const uint64_t* first; /* of the box */
  const uint64_t* count;
};

/* Says that the program has read a box. The node may unpack the chunks then that it expects to be
 * read, if it finds where they are: in a region that policy/arrays/packed_array.h has the name and
 * the form of. -ENOTSUP, -EAGAIN: as above. */
int cairn_packed_read(const struct CairnPackedRead* read);

/* A dataset that the program reads, and how its reads went since the news before. What the numbers
 * of layouts and reasons mean stands in policy/arrays/dataset_news.h. */
struct CairnArrayNews {
  int32_t descriptor;  /* as in CairnRegion */
  uint32_t dimensions; /* 0: not known, or more than the node follows */
  uint32_t layout;
  uint32_t unfit; /* the reason why none of its reads is served; 0: some may be */
  uint64_t cell_bytes;
  uint64_t offset;       /* of the first cell in the file, where the cells follow each other */
  uint64_t token[2];     /* names the dataset in its file */
  const uint64_t* shape; /* cells in each dimension */
  const uint64_t* chunk; /* the same of the file's chunks; null: it has none */
  uint32_t filter_count;
  uint32_t reason_count;
  const uint32_t* filters; /* by their registered numbers */
  const char* name;        /* within the file */
  uint64_t served_reads;
  uint64_t served_bytes;
  const uint64_t* left_reads; /* one number for each reason */
};

/* Tells the node of it. -EAGAIN: it has no time now, tell it later. -ENOTSUP: as above. */
int cairn_array_news(const struct CairnArrayNews* news);

/* In what grid programs read the array of that name (policy/arrays/file_array.h), if the node has
 * learned it: 4 * `dimensions` numbers, of a chunk, of the ghost zones before and behind it,
 * and of the grid's origin. cairn_region_read() tells which of its chunks the tiers have. -ENODATA:
 * the grid is not known. -ENOTSUP: as above. */
int cairn_array_grid(int descriptor, const uint64_t name[2], uint32_t dimensions,
                     uint64_t* numbers);

/* Brings a part of the file into RAM, in large pieces, before the program reads it in small ones:
 * as much as half of RAM. Blocks that are there are passed over; for those that others are bringing
 * in it waits. -ENOSPC: RAM has no room for the rest, or is not the file's place. -EBADF, or the
 * error of the backing store: not all of it could be read. -ENOTSUP: as above. */
int cairn_array_fetch(int descriptor, uint64_t offset, uint64_t bytes);

#ifdef __cplusplus
}
#endif
