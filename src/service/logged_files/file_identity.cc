// SPDX-License-Identifier: Apache-2.0
#include "service/logged_files/file_identity.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/descriptor_path.h"
#include "service/durable_log/file_handle.h"

namespace cairn::node {
namespace {

constexpr std::string_view kGone = " (deleted)";

bool leads_to(const std::string& path, int fd) {
  struct stat there{};
  struct stat open{};
  return ::lstat(path.c_str(), &there) == 0 && ::fstat(fd, &open) == 0 &&
         there.st_dev == open.st_dev && there.st_ino == open.st_ino;
}

// Empty where the kernel knows of no name: it is gone, or was never there (O_TMPFILE). A name may
// end as the kernel's word for that does.
std::string path_of(int fd) {
  char text[PATH_MAX];
  const ssize_t length = ::readlink(DescriptorPath(fd).text, text, sizeof text);
  std::string path(text, static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  if (path.ends_with(kGone) && !leads_to(path, fd)) path.clear();
  // "(unreachable)/..." is outside of this process's root.
  if (!path.starts_with('/')) path.clear();
  return path;
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
