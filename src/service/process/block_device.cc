// SPDX-License-Identifier: Apache-2.0
#include "service/process/block_device.h"

#include <sys/sysmacros.h>

#include <cstdio>
#include <string>

namespace cairn::node {

bool is_rotational(dev_t device) {
  const std::string base =
      "/sys/dev/block/" + std::to_string(major(device)) + ":" + std::to_string(minor(device));
  // A partition has no queue of its own: its disk stands one directory above.
  for (const char* tail : {"/queue/rotational", "/../queue/rotational"}) {
    std::FILE* file = std::fopen((base + tail).c_str(), "re");
    if (file == nullptr) continue;
    const int digit = std::fgetc(file);
    std::fclose(file);
    return digit == '1';
  }
  return false;
}

}  // namespace cairn::node
