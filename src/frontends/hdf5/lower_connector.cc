// SPDX-License-Identifier: Apache-2.0
#include "frontends/hdf5/lower_connector.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <new>

#include "base/check.h"
#include "frontends/hdf5/kept_errors.h"

namespace cairn::hdf5 {
namespace {

// H5VL_NATIVE is a function in 1.14 and a variable in 2.x; the number is the same everywhere.
constexpr H5VL_class_value_t kNativeValue = 0;

hid_t open_native(Library& library) {
  return library.call.H5VLregister_connector_by_value(kNativeValue, H5P_DEFAULT);
}

// The info of the connector below, from the text between the outermost braces.
bool parse_lower_info(Library& library, const char* text, LowerConnector& lower) {
  const char* first = strchr(text, '{');
  const char* last = strrchr(text, '}');
  if (first == nullptr && last == nullptr) return true;
  if (first == nullptr || last == nullptr || last < first) return false;
  if (last == first + 1) return true;
  char* inner = strndup(first + 1, static_cast<size_t>(last - first - 1));
  if (inner == nullptr) return false;
  const bool is_parsed =
      library.call.H5VLconnector_str_to_info(inner, lower.connector, &lower.info) >= 0;
  free(inner);
  return is_parsed;
}

}  // namespace

void* copy_lower(Library& library, const void* info) {
  const auto* from = static_cast<const LowerConnector*>(info);
  if (from == nullptr) return nullptr;
  auto* copy = new (std::nothrow) LowerConnector{from->connector, nullptr};
  if (copy == nullptr) return nullptr;
  library.call.H5Iinc_ref(copy->connector);
  if (from->info != nullptr &&
      library.call.H5VLcopy_connector_info(copy->connector, &copy->info, from->info) < 0) {
    free_lower(library, copy);
    return nullptr;
  }
  return copy;
}

herr_t compare_lower(Library& library, int* order, const void* left, const void* right) {
  const auto* one = static_cast<const LowerConnector*>(left);
  const auto* other = static_cast<const LowerConnector*>(right);
  *order = 0;
  if (one == nullptr || other == nullptr) {
    *order = (one != nullptr) - (other != nullptr);
    return 0;
  }
  if (library.call.H5VLcmp_connector_cls(order, one->connector, other->connector) < 0) return -1;
  if (*order != 0) return 0;
  return library.call.H5VLcmp_connector_info(order, one->connector, one->info, other->info);
}

herr_t free_lower(Library& library, void* info) {
  auto* lower = static_cast<LowerConnector*>(info);
  if (lower == nullptr) return 0;
  {
    const KeptErrors kept(library.call);
    if (lower->info != nullptr) {
      library.call.H5VLfree_connector_info(lower->connector, lower->info);
    }
    library.call.H5Idec_ref(lower->connector);
  }
  delete lower;
  return 0;
}

herr_t lower_to_string(Library& library, const void* info, char** text) {
  const auto* lower = static_cast<const LowerConnector*>(info);
  *text = nullptr;
  if (lower == nullptr) return 0;
  H5VL_class_value_t value = -1;
  char* inner = nullptr;
  if (library.call.H5VLget_value(lower->connector, &value) < 0) return -1;
  if (library.call.H5VLconnector_info_to_str(lower->info, lower->connector, &inner) < 0) return -1;
  // For the words around, and ten digits.
  const size_t size =
      sizeof "under_vol=;under_info={}" + 10 + (inner != nullptr ? strlen(inner) : 0);
  // HDF5 frees it.
  *text = static_cast<char*>(library.call.H5allocate_memory(size, false));
  if (*text != nullptr) {
    snprintf(*text, size, "under_vol=%u;under_info={%s}", static_cast<unsigned>(value),
             inner != nullptr ? inner : "");
  }
  if (inner != nullptr) library.call.H5free_memory(inner);
  return *text != nullptr ? 0 : -1;
}

herr_t string_to_lower(Library& library, const char* text, void** info) {
  *info = nullptr;
  if (text == nullptr || text[strspn(text, " ")] == '\0') return 0;
  unsigned value = 0;
  if (sscanf(text, " under_vol=%u", &value) != 1) return -1;
  auto* lower = new (std::nothrow) LowerConnector{H5I_INVALID_HID, nullptr};
  if (lower == nullptr) return -1;
  lower->connector = library.call.H5VLregister_connector_by_value(
      static_cast<H5VL_class_value_t>(value), H5P_DEFAULT);
  if (lower->connector < 0 || !parse_lower_info(library, text, *lower)) {
    if (lower->connector >= 0) {
      free_lower(library, lower);
    } else {
      delete lower;
    }
    return -1;
  }
  *info = lower;
  return 0;
}

herr_t capabilities_of_lower(Library& library, const void* info, uint64_t* flags) {
  const auto* lower = static_cast<const LowerConnector*>(info);
  if (lower != nullptr) {
    return library.call.H5VLintrospect_get_cap_flags(lower->info, lower->connector, flags);
  }
  const hid_t native = open_native(library);
  if (native < 0) return -1;
  const herr_t result = library.call.H5VLintrospect_get_cap_flags(nullptr, native, flags);
  const KeptErrors kept(library.call);
  library.call.H5Idec_ref(native);
  return result;
}

LowerAccess::LowerAccess(Library& library, hid_t properties) : library_(library) {
  void* info = nullptr;
  // A copy, which copy_lower() has made.
  if (library_.call.H5Pget_vol_info(properties, &info) < 0) return;
  if (info != nullptr) {
    lower_ = *static_cast<LowerConnector*>(info);
    delete static_cast<LowerConnector*>(info);
    H5VL_class_value_t value = -1;
    is_native_ =
        library_.call.H5VLget_value(lower_.connector, &value) >= 0 && value == kNativeValue;
  } else {
    lower_.connector = open_native(library_);
    is_native_ = true;
  }
  if (lower_.connector < 0) return;
  properties_ = library_.call.H5Pcopy(properties);
  if (properties_ >= 0 &&
      library_.call.H5Pset_vol(properties_, lower_.connector, lower_.info) < 0) {
    const KeptErrors kept(library_.call);
    library_.call.H5Pclose(properties_);
    properties_ = H5I_INVALID_HID;
  }
}

LowerAccess::~LowerAccess() {
  const KeptErrors kept(library_.call);
  if (properties_ >= 0) library_.call.H5Pclose(properties_);
  if (lower_.info != nullptr) {
    CAIRN_DCHECK(lower_.connector >= 0);
    library_.call.H5VLfree_connector_info(lower_.connector, lower_.info);
  }
  if (lower_.connector >= 0) library_.call.H5Idec_ref(lower_.connector);
}

hid_t LowerAccess::share_connector() {
  CAIRN_DCHECK(lower_.connector >= 0);
  library_.call.H5Iinc_ref(lower_.connector);
  return lower_.connector;
}

}  // namespace cairn::hdf5
