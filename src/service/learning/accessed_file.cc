// SPDX-License-Identifier: Apache-2.0
#include "service/learning/accessed_file.h"

#include <fcntl.h>
#include <fmt/format.h>

#include "memory/backing/posix_backing.h"
#include "service/process/unique_fd.h"
#include "service/write_back/store_files.h"

namespace cairn::node {

// The descriptor may be another file's by now.
std::string name_of_accessed(pid_t pid, std::int32_t descriptor, const ObjectKey& key) {
  const UniqueFd fd(
      ::open(fmt::format("/proc/{}/fd/{}", pid, descriptor).c_str(), O_PATH | O_CLOEXEC));
  StoreStatus status;
  const bool is_it = fd && known_store_status(fd.get(), &status) == 0 && status.key == key;
  return is_it ? path_of_descriptor(fd.get()) : name_by_key(key);
}

std::string name_by_key(const ObjectKey& key) {
  return fmt::format("device {} inode {}", raw(key.store), key.id.inode);
}

}  // namespace cairn::node
