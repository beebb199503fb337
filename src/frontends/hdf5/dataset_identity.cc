// SPDX-License-Identifier: Apache-2.0
#include "frontends/hdf5/dataset_identity.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "frontends/hdf5/kept_errors.h"

namespace cairn::hdf5 {
namespace {

// The name of the file that holds the dataset, for free(); or null.
char* ask_file_name(const Dataset& dataset, hid_t transfer) {
  const OpenFile& file = *dataset.file;
  size_t length = 0;
  H5VL_file_get_args_t question = {};
  question.op_type = H5VL_FILE_GET_NAME;
  question.args.get_name = {
      .type = H5I_DATASET, .buf_size = 0, .buf = nullptr, .file_name_len = &length};
  const auto ask = [&] {
    return file.library.call.H5VLfile_get(dataset.lower, file.connector, &question, transfer,
                                          nullptr) >= 0;
  };
  if (!ask()) return nullptr;
  question.args.get_name.buf_size = length + 1;
  question.args.get_name.buf = static_cast<char*>(calloc(length + 1, 1));
  if (question.args.get_name.buf != nullptr && ask()) return question.args.get_name.buf;
  free(question.args.get_name.buf);
  return nullptr;
}

bool ask_token(const Dataset& dataset, hid_t transfer, H5O_token_t& token) {
  const OpenFile& file = *dataset.file;
  H5VL_loc_params_t itself = {};
  itself.obj_type = H5I_DATASET;
  itself.type = H5VL_OBJECT_BY_SELF;
  H5O_info2_t info = {};
  H5VL_object_get_args_t question = {};
  question.op_type = H5VL_OBJECT_GET_INFO;
  question.args.get_info = {.fields = H5O_INFO_BASIC, .oinfo = &info};
  const bool is_told = file.library.call.H5VLobject_get(dataset.lower, &itself, file.connector,
                                                        &question, transfer, nullptr) >= 0;
  token = info.token;
  return is_told;
}

}  // namespace

bool identify(Dataset& dataset, hid_t transfer) {
  CAIRN_DCHECK(dataset.kind == Kind::kDataset);
  if (dataset.identity != Dataset::Identity::kNotAsked) {
    return dataset.identity == Dataset::Identity::kKnown;
  }
  CAIRN_DCHECK(dataset.file_name == nullptr);
  const KeptErrors kept(dataset.file->library.call);
  dataset.file_name = ask_file_name(dataset, transfer);
  const bool is_known = dataset.file_name != nullptr && ask_token(dataset, transfer, dataset.token);
  const char* opened = dataset.file->name;
  dataset.is_read_only = is_known && dataset.file->is_read_only() && opened != nullptr &&
                         strcmp(opened, dataset.file_name) == 0;
  dataset.identity = is_known ? Dataset::Identity::kKnown : Dataset::Identity::kUnknown;
  return is_known;
}

}  // namespace cairn::hdf5
