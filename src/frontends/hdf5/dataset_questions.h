// SPDX-License-Identifier: Apache-2.0
// What the connector asks of a dataset by itself, of the connector below.
//
// Thread safety: functions of HDF5, so as open_file.h. Errors: on HDF5's stack (kept_errors.h).
#pragma once

#include <cstddef>

#include "frontends/hdf5/object.h"

namespace cairn::hdf5 {

// The creation properties, the type or the space of a dataset, which the caller closes. Returns:
// H5I_INVALID_HID where there is none.
hid_t ask_dataset(const Dataset& dataset, H5VL_dataset_get_t what, hid_t transfer);

// The path by which the program has opened it, from the root of the file on, with a zero at the
// end; of a longer one, the last part. Empty where the program had none, because HDF5 would search
// the file for one.
void ask_name(const Dataset& dataset, hid_t transfer, char* name, std::size_t bytes);

}  // namespace cairn::hdf5
