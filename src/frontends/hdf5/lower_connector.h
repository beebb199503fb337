// SPDX-License-Identifier: Apache-2.0
// The connector below: which one, what it was told, and how a file is opened with it.
//
// The string of a connector, behind its name in HDF5_VOL_CONNECTOR, becomes a LowerConnector:
//
//   cairn                                        the native connector
//   cairn under_vol=512;under_info={...}         the connector with that number, and its own string
//
// HDF5 has null for a connector that was given no string. Null means the native one here, too, so
// that the name alone is enough.
//
// Thread safety: as open_file.h.
#pragma once

#include "frontends/hdf5/library.h"

namespace cairn::hdf5 {

// What HDF5 keeps in access property lists, by copies.
struct LowerConnector {
  hid_t connector;
  void* info;
};

// The callbacks of H5VL_info_class_t.
void* copy_lower(Library& library, const void* info);
herr_t compare_lower(Library& library, int* order, const void* left, const void* right);
herr_t free_lower(Library& library, void* info);
herr_t lower_to_string(Library& library, const void* info, char** text);
herr_t string_to_lower(Library& library, const char* text, void** info);

// The flags of the connector below.
herr_t capabilities_of_lower(Library& library, const void* info, uint64_t* flags);

// A file's access properties for the connector below, made from those for this connector.
// The destructor closes them and keeps the stack of errors.
class LowerAccess {
 public:
  LowerAccess(Library& library, hid_t properties);
  ~LowerAccess();
  LowerAccess(const LowerAccess&) = delete;
  LowerAccess& operator=(const LowerAccess&) = delete;

  bool is_valid() const { return properties_ >= 0; }
  bool is_native() const { return is_native_; }
  hid_t properties() const { return properties_; }
  hid_t connector() const { return lower_.connector; }
  // Another reference to the connector, for a file that keeps it.
  hid_t share_connector();

 private:
  Library& library_;
  LowerConnector lower_ = {H5I_INVALID_HID, nullptr};
  bool is_native_ = false;
  hid_t properties_ = H5I_INVALID_HID;
};

}  // namespace cairn::hdf5
