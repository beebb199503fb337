// SPDX-License-Identifier: Apache-2.0
#include "frontends/files/unserved_descriptors.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/system_call.h"
#include "frontends/client/session.h"
#include "frontends/descriptors/descriptor_table.h"
#include "frontends/descriptors/kernel_descriptors.h"
#include "frontends/descriptors/open_file.h"
#include "frontends/descriptors/placeholder.h"
#include "frontends/descriptors/private_descriptors.h"
#include "frontends/files/kernel_aio.h"
#include "frontends/files/kernel_files.h"
#include "frontends/paths/path_filter.h"

namespace cairn {
namespace {

// The private descriptor cannot append and has no twin, so the kernel opens one that does.
int open_appending(int given) {
  char path[kDescriptorPathBytes];
  write_descriptor_path(given, path);
  const int access = sys::fcntl(given, F_GETFL) & O_ACCMODE;
  return sys::openat(AT_FDCWD, path, access | O_APPEND | O_CLOEXEC);
}

void place(int fd, int given, DescriptionIndex description, std::uint32_t generation) {
  const int flags = Session::instance().take_unserved(given, description, generation);
  const int descriptor_flags = sys::fcntl(fd, F_GETFD);
  if (flags < 0 || descriptor_flags < 0) return;
  const bool appends = (sys::fcntl(given, F_GETFL) & O_APPEND) != 0;
  const int real = (flags & O_APPEND) != 0 && !appends ? open_appending(given) : given;
  if (real < 0) return;
  sys::dup3(real, fd, (descriptor_flags & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0);
  if (real != given) sys::close(real);
}

}  // namespace

void keep_inherited_through() {
  Session& session = Session::instance();
  if (session.standing() == Standing::kUnknown) return;
  KernelAio::begin_process();
  DescriptorTable::for_each([](int fd, OpenFile& file) {
    if (file.private_fd() != fd) place(fd, file.shared_fd(), file.index, file.generation);
  });
  DescriptorTable::for_each([](int fd, OpenFile& file) {
    file.backing->close_extra();
    for (const int given : file.real_fds()) {
      if (!PrivateDescriptors::is_private(given)) continue;
      PrivateDescriptors::remove(given);
      sys::close(given);
    }
    DescriptorTable::take(fd);
  });
  if (!KernelFiles::any()) return;
  PathFilter::resolve();
  // The parent keeps those in its own name, and may end before this child.
  for_each_kernel_descriptor([](int fd) {
    StoreStatus status;
    const bool is_file = !is_placeholder(fd) && store_status(fd, &status) == 0 &&
                         S_ISREG(status.mode) && PathFilter::manages(fd);
    if (is_file && KernelFiles::share(fd, status) < 0) refuse_descriptor(fd);
  });
}

void make_real_descriptor_of(int fd, int given, DescriptionIndex description,
                             std::uint32_t generation) {
  place(fd, given, description, generation);
}

}  // namespace cairn
