// SPDX-License-Identifier: Apache-2.0
// The library in a process that has loaded it late, by dlopen(): see cairn/join_node.h.
#include "cairn/join_node.h"

#include <errno.h>
#include <stdlib.h>

#include "frontends/client/session.h"
#include "frontends/descriptors/descriptor_table.h"
#include "frontends/files/file_io.h"
#include "frontends/libc/hook.h"
#include "frontends/posix/startup.h"

using cairn::DescriptorTable;
using cairn::OpenFile;
using cairn::Session;

extern "C" {

__attribute__((visibility("default"))) int cairn_join_node(const char* client_socket) {
  const cairn::ErrnoKeeper keeper;
  if (!Session::instance().is_configured()) cairn::join_late(client_socket);
  return Session::instance().is_configured() ? 0 : -ENAMETOOLONG;
}

__attribute__((visibility("default"))) int cairn_store_file(int descriptor) {
  const cairn::ErrnoKeeper keeper;
  OpenFile* file = DescriptorTable::find(descriptor);
  return file == nullptr ? 0 : cairn::file_sync(*file, false);
}
}
