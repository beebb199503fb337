// SPDX-License-Identifier: Apache-2.0
#include "service/process/process_image.h"

#include <errno.h>

#include <cstdio>
#include <cstring>
#include <string>

namespace cairn::node {

NodeMapping node_mapping_of(pid_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/maps";
  std::FILE* file = std::fopen(path.c_str(), "re");
  if (file == nullptr)
    return errno == ENOENT || errno == ESRCH ? NodeMapping::kNotMapped : NodeMapping::kUnknown;
  NodeMapping found = NodeMapping::kNotMapped;
  char line[512];
  while (found == NodeMapping::kNotMapped && std::fgets(line, sizeof line, file) != nullptr) {
    if (std::strstr(line, "memfd:cairn-control") != nullptr) found = NodeMapping::kMapped;
  }
  // A process that ends meanwhile has an end of file, one that may not be looked at an error.
  if (std::ferror(file) != 0 && found == NodeMapping::kNotMapped)
    found = errno == ESRCH ? NodeMapping::kNotMapped : NodeMapping::kUnknown;
  std::fclose(file);
  return found;
}

}  // namespace cairn::node
