// SPDX-License-Identifier: Apache-2.0
#include "frontends/hdf5/dataset_questions.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

namespace cairn::hdf5 {

hid_t ask_dataset(const Dataset& dataset, H5VL_dataset_get_t what, hid_t transfer) {
  H5VL_dataset_get_args_t question = {};
  question.op_type = what;
  const OpenFile& file = *dataset.file;
  if (file.library.call.H5VLdataset_get(dataset.lower, file.connector, &question, transfer,
                                        nullptr) < 0) {
    return H5I_INVALID_HID;
  }
  switch (what) {
    case H5VL_DATASET_GET_DCPL:
      return question.args.get_dcpl.dcpl_id;
    case H5VL_DATASET_GET_TYPE:
      return question.args.get_type.type_id;
    case H5VL_DATASET_GET_SPACE:
      return question.args.get_space.space_id;
    default:
      return H5I_INVALID_HID;
  }
}

namespace {

// Returns: the length of the whole name; a shorter buffer gets its beginning. 0: HDF5 knows none.
std::size_t ask_name_into(const Dataset& dataset, hid_t transfer, char* name, std::size_t bytes) {
  const OpenFile& file = *dataset.file;
  H5VL_loc_params_t itself = {};
  itself.obj_type = H5I_DATASET;
  itself.type = H5VL_OBJECT_BY_SELF;
  std::size_t length = 0;
  H5VL_object_get_args_t question = {};
  question.op_type = H5VL_OBJECT_GET_NAME;
  question.args.get_name = {.buf_size = bytes, .buf = name, .name_len = &length};
  const bool is_known = file.library.call.H5VLobject_get(dataset.lower, &itself, file.connector,
                                                         &question, transfer, nullptr) >= 0;
  name[bytes - 1] = '\0';
  return is_known ? length : 0;
}

}  // namespace

void ask_name(const Dataset& dataset, hid_t transfer, char* name, std::size_t bytes) {
  CAIRN_DCHECK(bytes != 0);
  name[0] = '\0';
  if (!dataset.has_path) return;
  const std::size_t length = ask_name_into(dataset, transfer, name, bytes);
  if (length == 0) name[0] = '\0';
  if (length < bytes) return;
  auto* const whole = static_cast<char*>(malloc(length + 1));
  if (whole != nullptr && ask_name_into(dataset, transfer, whole, length + 1) == length)
    memcpy(name, whole + length - (bytes - 1), bytes);
  free(whole);
}

}  // namespace cairn::hdf5
