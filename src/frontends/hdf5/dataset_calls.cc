// SPDX-License-Identifier: Apache-2.0
#include "frontends/hdf5/dataset_calls.h"

#include <stdlib.h>

#include "base/check.h"
#include "frontends/hdf5/chunk_room.h"
#include "frontends/hdf5/collective_reads.h"
#include "frontends/hdf5/forwarding.h"
#include "frontends/hdf5/serve.h"

namespace cairn::hdf5 {
namespace {

// The datasets below of a call. Nearly every call has one, which needs no memory.
class LowerDatasets {
 public:
  LowerDatasets(size_t count, void* datasets[]) {
    if (count == 0) return;
    auto** lower = count > 1 ? static_cast<void**>(calloc(count, sizeof(void*))) : &one_;
    if (lower == nullptr) return;
    all_ = lower;
    first_ = object_of(datasets[0]);
    for (size_t i = 0; i < count; i++) {
      const Object* object = object_of(datasets[i]);
      is_valid_ = object != nullptr && have_same_connector(*object->file, *first_->file);
      if (!is_valid_) return;
      all_[i] = object->lower;
    }
  }
  ~LowerDatasets() {
    if (all_ != &one_) free(all_);
  }
  LowerDatasets(const LowerDatasets&) = delete;
  LowerDatasets& operator=(const LowerDatasets&) = delete;

  bool is_valid() const { return is_valid_; }
  void** get() const { return all_; }
  OpenFile& file() const { return *first_->file; }

 private:
  void* one_ = nullptr;
  void** all_ = nullptr;
  const Object* first_ = nullptr;
  bool is_valid_ = false;
};

herr_t read_below(Dataset& dataset, DatasetRead read, void** request) {
  OpenFile& file = *dataset.file;
  const RequestScope scope(file, request);
  const herr_t result = file.library.call.H5VLdataset_read(
      1, &dataset.lower, file.connector, &read.memory_type, &read.memory_space, &read.file_space,
      read.transfer, &read.buffer, request);
  if (result >= 0) after_read(dataset);
  return result;
}

herr_t read_together(Dataset& dataset, const DatasetRead& read, void** request) {
  const CollectiveRead own(dataset, read);
  return own.is_over() ? 0 : read_below(dataset, own.below(), request);
}

}  // namespace

CAIRN_HDF5_CALLBACK(void*, create_dataset,
                    (void* location, const H5VL_loc_params_t* where, const char* name, hid_t link,
                     hid_t type, hid_t space, hid_t creation, hid_t access, hid_t transfer,
                     void** request)) {
  if (location == nullptr) return nullptr;
  RoomyAccess roomy(*object_of(location)->file, {type, space, creation, access});
  void* created = Opening<&Hdf5Functions::H5VLdataset_create, Kind::kDataset>::call(
      location, where, name, link, type, space, creation, roomy.get(), transfer, request);
  if (created != nullptr) static_cast<Dataset*>(object_of(created))->chunk_room = roomy.take();
  return created;
}

CAIRN_HDF5_CALLBACK(herr_t, read_datasets,
                    (size_t count, void* datasets[], hid_t memory_types[], hid_t memory_spaces[],
                     hid_t file_spaces[], hid_t transfer, void* buffers[], void** request)) {
  if (count == 1 && datasets[0] != nullptr) {
    CAIRN_DCHECK(object_of(datasets[0])->kind == Kind::kDataset);
    auto& dataset = *static_cast<Dataset*>(object_of(datasets[0]));
    const DatasetRead read = {.memory_type = memory_types[0],
                              .memory_space = memory_spaces[0],
                              .file_space = file_spaces[0],
                              .transfer = transfer,
                              .buffer = buffers[0]};
    if (is_voted(*dataset.file, transfer)) return read_together(dataset, read, request);
    return serve(dataset, read) ? 0 : read_below(dataset, read, request);
  }
  if (count > 1) {
    for (size_t i = 0; i < count; i++) note_unserved(object_of(datasets[i]), transfer);
  }
  const LowerDatasets lower(count, datasets);
  if (!lower.is_valid()) return -1;
  OpenFile& file = lower.file();
  // Others may have one dataset, and wait for this rank's vote.
  if (is_voted(file, transfer)) (void)file.ranks.all_have_theirs(false);
  const RequestScope scope(file, request);
  return file.library.call.H5VLdataset_read(count, lower.get(), file.connector, memory_types,
                                            memory_spaces, file_spaces, transfer, buffers, request);
}

CAIRN_HDF5_CALLBACK(herr_t, write_datasets,
                    (size_t count, void* datasets[], hid_t memory_types[], hid_t memory_spaces[],
                     hid_t file_spaces[], hid_t transfer, const void* buffers[], void** request)) {
  const LowerDatasets lower(count, datasets);
  if (!lower.is_valid()) return -1;
  OpenFile& file = lower.file();
  const RequestScope scope(file, request);
  return file.library.call.H5VLdataset_write(count, lower.get(), file.connector, memory_types,
                                             memory_spaces, file_spaces, transfer, buffers,
                                             request);
}

herr_t close_dataset(void* object, hid_t transfer, void** request) {
  if (object != nullptr) before_close(*static_cast<Dataset*>(object_of(object)), transfer);
  return Closing<&Hdf5Functions::H5VLdataset_close>::call(object, transfer, request);
}

herr_t close_file(void* object, hid_t transfer, void** request) {
  if (object != nullptr) before_close(*object_of(object)->file);
  return Closing<&Hdf5Functions::H5VLfile_close>::call(object, transfer, request);
}

}  // namespace cairn::hdf5
