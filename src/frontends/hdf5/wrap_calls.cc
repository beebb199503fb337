// SPDX-License-Identifier: Apache-2.0
#include "frontends/hdf5/wrap_calls.h"

#include <new>

#include "base/check.h"
#include "frontends/hdf5/kept_errors.h"

namespace cairn::hdf5 {

void* get_lower_object(const void* object) {
  if (object == nullptr) return nullptr;
  const auto& wrapped = *static_cast<const Object*>(object);
  return wrapped.file->library.call.H5VLget_object(wrapped.lower, wrapped.file->connector);
}

herr_t get_wrap_context(const void* object, void** context) {
  CAIRN_DCHECK(context != nullptr);
  if (object == nullptr) return -1;
  const auto& wrapped = *static_cast<const Object*>(object);
  OpenFile& file = *wrapped.file;
  if (file.is_native) {
    hold(file);
    *context = &file.context;
    return 0;
  }
  auto* made = new (std::nothrow) WrapContext{&file, nullptr};
  if (made == nullptr) return -1;
  if (file.library.call.H5VLget_wrap_ctx(wrapped.lower, file.connector, &made->lower) < 0) {
    delete made;
    return -1;
  }
  hold(file);
  *context = made;
  return 0;
}

void* wrap_object(void* lower, H5I_type_t type, void* context) {
  CAIRN_DCHECK(context != nullptr);
  const auto& wrapping = *static_cast<WrapContext*>(context);
  OpenFile& file = *wrapping.file;
  void* wrapped = file.library.call.H5VLwrap_object(lower, type, file.connector, wrapping.lower);
  return make_object(file, wrapped, type == H5I_DATASET ? Kind::kDataset : Kind::kOther);
}

void* unwrap_object(void* object) {
  if (object == nullptr) return nullptr;
  const OpenFile& file = *object_of(object)->file;
  void* lower = file.library.call.H5VLunwrap_object(object_of(object)->lower, file.connector);
  if (lower != nullptr) release(object_of(object));
  return lower;
}

herr_t free_wrap_context(void* context) {
  CAIRN_DCHECK(context != nullptr);
  auto* wrapping = static_cast<WrapContext*>(context);
  OpenFile& file = *wrapping->file;
  if (wrapping != &file.context) {
    if (wrapping->lower != nullptr) {
      const KeptErrors kept(file.library.call);
      file.library.call.H5VLfree_wrap_ctx(wrapping->lower, file.connector);
    }
    delete wrapping;
  }
  release(file);
  return 0;
}

herr_t get_connector_class(void* object, H5VL_get_conn_lvl_t level, const H5VL_class_t** found) {
  if (object == nullptr) return -1;
  const OpenFile& file = *object_of(object)->file;
  if (level == H5VL_GET_CONN_LVL_CURR) {
    *found = file.library.connector_class;
    return 0;
  }
  return file.library.call.H5VLintrospect_get_conn_cls(object_of(object)->lower, file.connector,
                                                       level, found);
}

herr_t free_request(void* request) {
  if (request == nullptr) return -1;
  const OpenFile& file = *object_of(request)->file;
  const herr_t result =
      file.library.call.H5VLrequest_free(object_of(request)->lower, file.connector);
  if (result >= 0) release(object_of(request));
  return result;
}

}  // namespace cairn::hdf5
