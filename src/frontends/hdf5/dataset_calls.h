// SPDX-License-Identifier: Apache-2.0
// Reads and writes of datasets, of which one call may have several; and where they begin and end.
//
// Thread safety: as open_file.h.
#pragma once

#include "frontends/hdf5/callback.h"

namespace cairn::hdf5 {

void* create_dataset(void* location, const H5VL_loc_params_t* where, const char* name, hid_t link,
                     hid_t type, hid_t space, hid_t creation, hid_t access, hid_t transfer,
                     void** request);
herr_t read_datasets(size_t count, void* datasets[], hid_t memory_types[], hid_t memory_spaces[],
                     hid_t file_spaces[], hid_t transfer, void* buffers[], void** request);
herr_t write_datasets(size_t count, void* datasets[], hid_t memory_types[], hid_t memory_spaces[],
                      hid_t file_spaces[], hid_t transfer, const void* buffers[], void** request);
herr_t close_dataset(void* dataset, hid_t transfer, void** request);
// Here because of what the file's datasets have left to say.
herr_t close_file(void* file, hid_t transfer, void** request);

}  // namespace cairn::hdf5
