// SPDX-License-Identifier: Apache-2.0
#include "frontends/hdf5/serve.h"

#include <errno.h>
#include <fcntl.h>

#include <algorithm>

#include "base/check.h"
#include "frontends/hdf5/array.h"
#include "frontends/hdf5/box_reads.h"
#include "frontends/hdf5/chunk_reads.h"
#include "frontends/hdf5/dataset_identity.h"
#include "frontends/hdf5/dataset_news.h"
#include "frontends/hdf5/kept_errors.h"
#include "frontends/hdf5/packed_reads.h"
#include "frontends/hdf5/plain_transfer.h"
#include "frontends/hdf5/regions.h"
#include "frontends/hdf5/selection.h"

namespace cairn::hdf5 {
namespace {

using arrays::LeftReason;

// The dataset's chunks, if they may be kept.
Array* array_of(Dataset& dataset, hid_t transfer) {
  if (dataset.is_looked_at) return static_cast<Array*>(dataset.array);
  dataset.is_looked_at = true;
  if (identify(dataset, transfer) && dataset.is_read_only)
    dataset.array = Array::look_at(dataset, transfer);
  else
    leave_all(dataset, LeftReason::kElsewhere);
  // The node is to know the array before it hears of boxes of it.
  ReadNews* news = ReadNews::if_any(dataset);
  if (news != nullptr && dataset.array != nullptr) news->tell_sometimes(dataset, transfer);
  return static_cast<Array*>(dataset.array);
}

// Whether the dataset's cells are those of the file, and wanted as they are there.
bool are_cells_of_file(const Dataset& dataset, const Array& array, const DatasetRead& read) {
  const OpenFile& file = *dataset.file;
  if (WritableFile::is_any(file.source.identity)) return leave(dataset, LeftReason::kWritable);
  return file.library.call.H5Tequal(read.memory_type, array.type()) > 0 ||
         leave(dataset, LeftReason::kConversion);
}

// A read waits for so many bytes at most before HDF5 begins with it.
constexpr std::uint64_t kNowBytesMax = std::uint64_t{256} << 20;

// What HDF5 is about to read row by row comes in large pieces before.
template <typename Selection>
void bring_now(const OpenFile& file, const Array& array, const Selection& selection) {
  const arrays::ByteRun now = array.needed_now(selection);
  if (now.bytes == 0) return;
  (void)region_calls()->fetch(file.source.descriptor, now.offset,
                              std::min(now.bytes, kNowBytesMax));
}

// The bytes are on their way while the program computes.
void bring_in(const OpenFile& file, const std::optional<arrays::ByteRun>& run) {
  if (!run) return;
  (void)::posix_fadvise(file.source.descriptor, static_cast<off_t>(run->offset),
                        static_cast<off_t>(run->bytes), POSIX_FADV_WILLNEED);
}

// HDF5 reads a selection with steps, but what comes next can be there by then.
bool follow_steps(const Dataset& dataset, Array& array, const DatasetRead& read) {
  const OpenFile& file = *dataset.file;
  const auto slab = hyperslab_in_file(file.library.call, read.file_space, array.shape());
  if (slab) {
    bring_now(file, array, *slab);
    bring_in(file, array.follow(*slab));
  }
  return leave(dataset, LeftReason::kSelection);
}

// The node may have gathered the box. The rows that the program is going to read next are on their
// way while it computes, and while HDF5 reads this box; but not while a gathered one is copied.
bool serve_rows(const Dataset& dataset, Array& array, const DatasetRead& read) {
  const OpenFile& file = *dataset.file;
  const auto box = box_in_file(file.library.call, read.file_space, array.shape());
  if (!box) return follow_steps(dataset, array, read);
  const bool is_served = (has_no_gaps(file.library.call, read, *box, array.shape()) ||
                          leave(dataset, LeftReason::kSelection)) &&
                         are_cells_of_file(dataset, array, read) &&
                         read_gathered(dataset, array, read, *box);
  if (!is_served) bring_now(file, array, *box);
  bring_in(file, array.follow(*box));
  return is_served;
}

// False where HDF5 has to read the box.
bool serve_packed(Dataset& dataset, Array& array, const DatasetRead& read) {
  const OpenFile& file = *dataset.file;
  if (!are_cells_of_file(dataset, array, read)) return false;
  const auto box = box_of(file.library.call, read, array.grid().array());
  if (!box) return leave(dataset, LeftReason::kSelection);
  ChunkReads chunks(dataset, array, read, *box);
  bool is_served = true;
  array.grid().for_each(array.grid().chunks_of(*box), [&](std::uint64_t number) {
    is_served = is_served && chunks.read_chunk(number);
  });
  if (is_served) tell_of_packed_read(dataset, array, read, *box);
  return is_served;
}

// The tiers did not have the cells: may they have any of this version of the file?
LeftReason why_not_there(const OpenFile& file, LeftReason otherwise) {
  CairnRegion none{};
  none.descriptor = file.source.descriptor;
  none.bytes = 1;
  none.version = file.source.version;
  switch (region_calls()->read(&none, nullptr, 0)) {
    case -ENOTSUP:
      return LeftReason::kWriter;
    case -ESTALE:
      return LeftReason::kChanged;
    default:
      return otherwise;
  }
}

bool serve_if_fit(Dataset& dataset, const DatasetRead& read) {
  CAIRN_DCHECK(dataset.kind == Kind::kDataset);
  CAIRN_DCHECK(dataset.lower != nullptr);
  const OpenFile& file = *dataset.file;
  if (!file.source.is_open())
    return leave_all(dataset, file.flags != 0 ? LeftReason::kWritable : LeftReason::kOtherFile);
  if (read.buffer == nullptr || (dataset.is_looked_at && dataset.array == nullptr)) return false;
  const KeptErrors kept(file.library.call);
  if (!is_plain(file.library, read.transfer)) return leave(dataset, LeftReason::kTransfer);
  Array* array = array_of(dataset, read.transfer);
  if (array == nullptr) return false;
  if (array->is_packed()) return serve_packed(dataset, *array, read);
  return serve_rows(dataset, *array, read);
}

}  // namespace

bool serve(Dataset& dataset, const DatasetRead& read) {
  ReadNews* news = ReadNews::of(dataset, read.transfer);
  const bool is_served = serve_if_fit(dataset, read);
  if (news == nullptr) return is_served;
  if (news->left == LeftReason::kNotThere || news->left == LeftReason::kCheap)
    news->left = why_not_there(*dataset.file, news->left);
  news->count_read(is_served);
  news->tell_sometimes(dataset, read.transfer);
  return is_served;
}

void note_unserved(Object* object, hid_t transfer) {
  if (object == nullptr || object->kind != Kind::kDataset) return;
  Dataset& dataset = *static_cast<Dataset*>(object);
  ReadNews* news = ReadNews::of(dataset, transfer);
  if (news == nullptr) return;
  news->left = LeftReason::kTransfer;
  news->count_read(false);
  news->tell_sometimes(dataset, transfer);
}

void before_close(Dataset& dataset, hid_t transfer) {
  ReadNews* news = ReadNews::if_any(dataset);
  if (news == nullptr || !news->has_counted()) return;
  if (dataset.owns_news || dataset.file->is_closed) {
    news->tell_last(dataset, transfer);
  } else {
    news->tell_sometimes(dataset, transfer);
  }
}

void before_close(OpenFile& file) {
  file.is_closed = true;
  ReadNews::tell_rest(file);
}

void after_read(const Dataset& dataset) {
  if (dataset.array != nullptr) tell_of_read(dataset);
}

}  // namespace cairn::hdf5
