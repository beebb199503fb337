// SPDX-License-Identifier: Apache-2.0
#include "frontends/hdf5/object.h"

#include <new>

#include "base/check.h"
#include "frontends/hdf5/chunk_room.h"

namespace cairn::hdf5 {

Dataset::~Dataset() {
  give_back_chunk_room(chunk_room);
  delete array;
  if (owns_news) delete news;
}

Object* make_object(OpenFile& file, void* lower, Kind kind) {
  if (lower == nullptr) return nullptr;
  Object* object = kind == Kind::kDataset ? new (std::nothrow) Dataset(file, lower)
                                          : new (std::nothrow) Object(file, lower);
  if (object != nullptr) hold(file);
  return object;
}

void release(Object* object) {
  CAIRN_DCHECK(object != nullptr);
  OpenFile& file = *object->file;
  if (object->kind == Kind::kDataset) {
    delete static_cast<Dataset*>(object);
  } else {
    delete object;
  }
  release(file);
}

}  // namespace cairn::hdf5
