// SPDX-License-Identifier: Apache-2.0
// Calls about links and objects with two locations, of which one may be missing ("the same as the
// other"), and the open whose answer may be of any kind.
//
// Thread safety: as open_file.h.
#pragma once

#include "frontends/hdf5/callback.h"

namespace cairn::hdf5 {

herr_t create_link(H5VL_link_create_args_t* arguments, void* object, const H5VL_loc_params_t* place,
                   hid_t creation, hid_t access, hid_t transfer, void** request);
herr_t copy_link(void* source, const H5VL_loc_params_t* source_place, void* target,
                 const H5VL_loc_params_t* target_place, hid_t creation, hid_t access,
                 hid_t transfer, void** request);
herr_t move_link(void* source, const H5VL_loc_params_t* source_place, void* target,
                 const H5VL_loc_params_t* target_place, hid_t creation, hid_t access,
                 hid_t transfer, void** request);
herr_t copy_object(void* source, const H5VL_loc_params_t* source_place, const char* source_name,
                   void* target, const H5VL_loc_params_t* target_place, const char* target_name,
                   hid_t copying, hid_t creation, hid_t transfer, void** request);
void* open_object(void* object, const H5VL_loc_params_t* place, H5I_type_t* type, hid_t transfer,
                  void** request);

}  // namespace cairn::hdf5
