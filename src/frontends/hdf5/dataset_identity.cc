// SPDX-License-Identifier: Apache-2.0
#include "frontends/hdf5/dataset_identity.h"

#include "base/check.h"
#include "frontends/hdf5/kept_errors.h"

namespace cairn::hdf5 {
namespace {

bool ask_info(const Dataset& dataset, hid_t transfer, H5O_info2_t& info) {
  const OpenFile& file = *dataset.file;
  H5VL_loc_params_t itself = {};
  itself.obj_type = H5I_DATASET;
  itself.type = H5VL_OBJECT_BY_SELF;
  H5VL_object_get_args_t question = {};
  question.op_type = H5VL_OBJECT_GET_INFO;
  question.args.get_info = {.fields = H5O_INFO_BASIC, .oinfo = &info};
  return file.library.call.H5VLobject_get(dataset.lower, &itself, file.connector, &question,
                                          transfer, nullptr) >= 0;
}

}  // namespace

bool identify(Dataset& dataset, hid_t transfer) {
  CAIRN_DCHECK(dataset.kind == Kind::kDataset);
  if (dataset.identity != Dataset::Identity::kNotAsked) {
    return dataset.identity == Dataset::Identity::kKnown;
  }
  OpenFile& file = *dataset.file;
  const KeptErrors kept(file.library.call);
  H5O_info2_t info = {};
  const bool is_known = ask_info(dataset, transfer, info);
  const bool is_in_file = is_known && info.fileno == file.number && file.number != 0;
  if (is_known && !is_in_file) file.library.has_hidden_files = true;
  dataset.token = info.token;
  dataset.is_in_file = is_in_file;
  dataset.is_read_only = is_in_file && file.is_read_only();
  dataset.identity = is_known ? Dataset::Identity::kKnown : Dataset::Identity::kUnknown;
  return is_known;
}

}  // namespace cairn::hdf5
