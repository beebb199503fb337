// SPDX-License-Identifier: Apache-2.0
#include "frontends/hdf5/open_file.h"

#include <stdlib.h>
#include <string.h>

#include <new>
#include <utility>

#include "base/check.h"
#include "frontends/hdf5/kept_errors.h"

namespace cairn::hdf5 {

namespace {

WritableFile writable_of(const FileOpening& opening) {
  if ((opening.flags & kReadWrite) == 0) return {};
  return WritableFile(opening.identity);
}

// HDF5 opens a file once, and holds for all who share it what it has read since the first of them.
void agree_with_sharers(OpenFile& file) {
  const Library& library = file.library;
  if (file.number == 0 || library.has_hidden_files) file.source = {};
  for (const OpenFile* other = library.files; other != nullptr; other = other->next) {
    if (other->number != file.number) continue;
    if (other->source.is_open() && file.source.is_open())
      file.source.version = other->source.version;
    else
      file.source = {};
  }
}

void forget(const OpenFile& file) {
  OpenFile** place = &file.library.files;
  while (*place != nullptr && *place != &file) place = &(*place)->next;
  CAIRN_DCHECK(*place == &file);
  if (*place != nullptr) *place = file.next;
}

}  // namespace

OpenFile* make_file(Library& library, FileOpening opening) {
  CAIRN_DCHECK(opening.name != nullptr);
  CAIRN_DCHECK(opening.connector >= 0);
  auto* file = new (std::nothrow) OpenFile{.library = library,
                                           .connector = opening.connector,
                                           .is_native = opening.is_native,
                                           .flags = opening.flags,
                                           .name = strdup(opening.name),
                                           .source = opening.source,
                                           .writable = writable_of(opening),
                                           .descriptor = opening.descriptor,
                                           .own = std::move(opening.own),
                                           .ranks = std::move(opening.ranks),
                                           .news = nullptr,
                                           .chunk_room = opening.chunk_room,
                                           .waited_ns = 0,
                                           .is_closed = false,
                                           .number = opening.number,
                                           .next = nullptr,
                                           .context = {},
                                           .holders = 1};
  if (file == nullptr) return nullptr;
  file->context.file = file;
  agree_with_sharers(*file);
  file->next = library.files;
  library.files = file;
  return file;
}

void hold(OpenFile& file) {
  const int before = file.holders.fetch_add(1, std::memory_order_relaxed);
  CAIRN_DCHECK(before > 0);
  (void)before;
}

void release(OpenFile& file) {
  const int before = file.holders.fetch_sub(1, std::memory_order_acq_rel);
  CAIRN_DCHECK(before > 0);
  if (before > 1) return;
  {
    const KeptErrors kept(file.library.call);
    file.library.call.H5Idec_ref(file.connector);
  }
  forget(file);
  free(file.name);
  delete file.news;
  delete &file;
}

bool have_same_connector(const OpenFile& one, const OpenFile& other) {
  CAIRN_DCHECK(&one.library == &other.library);
  if (one.connector == other.connector || (one.is_native && other.is_native)) return true;
  int order = 0;
  return one.library.call.H5VLcmp_connector_cls(&order, one.connector, other.connector) >= 0 &&
         order == 0;
}

}  // namespace cairn::hdf5
