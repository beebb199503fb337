// SPDX-License-Identifier: Apache-2.0
#include "service/logged_files/file_identity.h"

#include <unistd.h>

#include <climits>
#include <string>

#include "base/check.h"
#include "base/descriptor_path.h"
#include "service/durable_log/file_handle.h"

namespace cairn::node {
namespace {

std::string path_of(int fd) {
  char path[PATH_MAX];
  const ssize_t length = ::readlink(DescriptorPath(fd).text, path, sizeof path);
  return length <= 0 ? std::string() : std::string(path, static_cast<std::size_t>(length));
}

}  // namespace

durable::FileIdentity identity_of(int fd, const ObjectKey& key, StoreName store) {
  CAIRN_CHECK(fd >= 0);
  durable::FileIdentity identity;
  identity.key = key;
  identity.store = store;
  identity.path = path_of(fd);
  identity.handle = durable::handle_of(fd);
  return identity;
}

}  // namespace cairn::node
