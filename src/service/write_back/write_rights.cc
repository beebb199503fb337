// SPDX-License-Identifier: Apache-2.0
#include "service/write_back/write_rights.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cairn::node {

int give_up_set_id_rights() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct rights[_LINUX_CAPABILITY_U32S_3] = {};
  if (::syscall(SYS_capget, &header, rights) != 0) return errno;
  rights[CAP_TO_INDEX(CAP_FSETID)].effective &= ~CAP_TO_MASK(CAP_FSETID);
  rights[CAP_TO_INDEX(CAP_FSETID)].permitted &= ~CAP_TO_MASK(CAP_FSETID);
  return ::syscall(SYS_capset, &header, rights) == 0 ? 0 : errno;
}

}  // namespace cairn::node
