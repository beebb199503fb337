// SPDX-License-Identifier: Apache-2.0
#include "frontends/hdf5/link_calls.h"

#include "base/check.h"
#include "frontends/hdf5/forwarding.h"

namespace cairn::hdf5 {
namespace {

// The file that the call goes through, which is that of the first object that is there. Null where
// neither is, or where the two cannot meet.
OpenFile* file_of(void* one, void* other) {
  if (one == nullptr && other == nullptr) return nullptr;
  if (one == nullptr || other == nullptr) return object_of(one != nullptr ? one : other)->file;
  OpenFile& file = *object_of(one)->file;
  return have_same_connector(file, *object_of(other)->file) ? &file : nullptr;
}

}  // namespace

CAIRN_HDF5_CALLBACK(herr_t, create_link,
                    (H5VL_link_create_args_t * arguments, void* object,
                     const H5VL_loc_params_t* place, hid_t creation, hid_t access, hid_t transfer,
                     void** request)) {
  CAIRN_DCHECK(arguments != nullptr);
  H5VL_link_create_args_t lower = *arguments;
  void* current = nullptr;
  if (lower.op_type == H5VL_LINK_CREATE_HARD) {
    current = lower.args.hard.curr_obj;
    lower.args.hard.curr_obj = lower_of(current);
  }
  OpenFile* file = file_of(object, current);
  if (file == nullptr) return -1;
  const RequestScope scope(*file, request);
  return file->library.call.H5VLlink_create(&lower, lower_of(object), place, file->connector,
                                            creation, access, transfer, request);
}

CAIRN_HDF5_CALLBACK(herr_t, copy_link,
                    (void* source, const H5VL_loc_params_t* source_place, void* target,
                     const H5VL_loc_params_t* target_place, hid_t creation, hid_t access,
                     hid_t transfer, void** request)) {
  OpenFile* file = file_of(source, target);
  if (file == nullptr) return -1;
  const RequestScope scope(*file, request);
  return file->library.call.H5VLlink_copy(lower_of(source), source_place, lower_of(target),
                                          target_place, file->connector, creation, access, transfer,
                                          request);
}

CAIRN_HDF5_CALLBACK(herr_t, move_link,
                    (void* source, const H5VL_loc_params_t* source_place, void* target,
                     const H5VL_loc_params_t* target_place, hid_t creation, hid_t access,
                     hid_t transfer, void** request)) {
  OpenFile* file = file_of(source, target);
  if (file == nullptr) return -1;
  const RequestScope scope(*file, request);
  return file->library.call.H5VLlink_move(lower_of(source), source_place, lower_of(target),
                                          target_place, file->connector, creation, access, transfer,
                                          request);
}

CAIRN_HDF5_CALLBACK(herr_t, copy_object,
                    (void* source, const H5VL_loc_params_t* source_place, const char* source_name,
                     void* target, const H5VL_loc_params_t* target_place, const char* target_name,
                     hid_t copying, hid_t creation, hid_t transfer, void** request)) {
  OpenFile* file = file_of(source, target);
  if (file == nullptr) return -1;
  const RequestScope scope(*file, request);
  return file->library.call.H5VLobject_copy(lower_of(source), source_place, source_name,
                                            lower_of(target), target_place, target_name,
                                            file->connector, copying, creation, transfer, request);
}

void* open_object(void* object, const H5VL_loc_params_t* place, H5I_type_t* type, hid_t transfer,
                  void** request) {
  if (object == nullptr) return nullptr;
  CAIRN_DCHECK(type != nullptr);
  OpenFile& file = *object_of(object)->file;
  void* lower = ask_lower<&Hdf5Functions::H5VLobject_open, void*>(*object_of(object), place, type,
                                                                  transfer, request);
  const bool is_dataset = lower != nullptr && *type == H5I_DATASET;
  Object* opened = make_object(file, lower, is_dataset ? Kind::kDataset : Kind::kOther);
  if (is_dataset && opened != nullptr)
    static_cast<Dataset*>(opened)->has_path = place->type != H5VL_OBJECT_BY_TOKEN;
  return opened;
}

}  // namespace cairn::hdf5
