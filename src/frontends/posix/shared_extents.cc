// SPDX-License-Identifier: Apache-2.0
#include "frontends/posix/shared_extents.h"

#include <errno.h>
#include <fcntl.h>

#include <array>
#include <cstddef>

#include "base/system_call.h"
#include "base/user_copy.h"
#include "frontends/descriptors/descriptor_table.h"
#include "frontends/descriptors/open_file.h"
#include "frontends/files/through_mode.h"

namespace cairn {
namespace {

// A range that no file has. The kernel looks at it when it has found nothing else to object to, and
// before it does anything.
constexpr std::int64_t kNowhere = -1;

int real_descriptor(int fd) {
  const OpenFile* file = DescriptorTable::find(fd);
  return file == nullptr ? fd : file->private_fd();
}

int control(int fd, unsigned long request, const void* argument) {
  return static_cast<int>(
      sys::call(SYS_ioctl, fd, static_cast<long>(request), sys::word(argument)));
}

// The kernel's objection before it looks at the range, or 0.
int objection_to_clone(int to_fd, int from_fd) {
  file_clone_range probe{};
  probe.src_fd = real_descriptor(from_fd);
  probe.src_offset = static_cast<std::uint64_t>(kNowhere);
  const int error = control(real_descriptor(to_fd), FICLONERANGE, &probe);
  // The private descriptor never appends, so the kernel cannot know.
  const OpenFile* to = DescriptorTable::find(to_fd);
  const bool appends = to != nullptr && (to->flags() & O_APPEND) != 0;
  if ((error == -EINVAL || error == -EOPNOTSUPP) && appends) return -EBADF;
  return error == -EINVAL ? 0 : error;
}

int enter(ThroughMode& mode, int fd) {
  OpenFile* file = DescriptorTable::find(fd);
  return file == nullptr ? 0 : mode.enter(*file);
}

// `call()` asks the kernel, once both files are its own.
template <typename Call>
int clone(int to_fd, int from_fd, Call&& call) {
  if (const int error = objection_to_clone(to_fd, from_fd); error < 0) return error;
  ThroughMode from;
  ThroughMode to;
  if (const int error = enter(from, from_fd); error < 0) return error;
  if (const int error = enter(to, to_fd); error < 0) return error;
  return call();
}

constexpr std::size_t bytes_of(std::size_t destinations) {
  return offsetof(file_dedupe_range, info) + destinations * sizeof(file_dedupe_range_info);
}

// The kernel takes no more than a page.
constexpr std::size_t kPageOfRequest = 4096;
constexpr std::size_t kDestinationsMax =
    (kPageOfRequest - bytes_of(0)) / sizeof(file_dedupe_range_info);

static_assert(kDestinationsMax > 0 && bytes_of(kDestinationsMax) <= kPageOfRequest);

struct DedupeRequest {
  alignas(file_dedupe_range) std::array<std::byte, kPageOfRequest> bytes;

  file_dedupe_range& range() { return *reinterpret_cast<file_dedupe_range*>(bytes.data()); }
};

}  // namespace

int clone_file(int to_fd, int from_fd) {
  return clone(to_fd, from_fd, [&] {
    return static_cast<int>(sys::call(SYS_ioctl, real_descriptor(to_fd), static_cast<long>(FICLONE),
                                      real_descriptor(from_fd)));
  });
}

int clone_range(int to_fd, const file_clone_range& range) {
  file_clone_range real = range;
  const int from_fd = static_cast<int>(range.src_fd);
  real.src_fd = real_descriptor(from_fd);
  return clone(to_fd, from_fd,
               [&] { return control(real_descriptor(to_fd), FICLONERANGE, &real); });
}

int deduplicate(int fd, file_dedupe_range* request) {
  DedupeRequest real;
  if (user_copy(real.bytes.data(), request, bytes_of(0)) != 0) return -EFAULT;
  const std::size_t count = real.range().dest_count;
  if (count > kDestinationsMax) return control(real_descriptor(fd), FIDEDUPERANGE, request);
  if (user_copy(real.bytes.data(), request, bytes_of(count)) != 0) return -EFAULT;
  file_dedupe_range& range = real.range();
  const std::uint64_t offset = range.src_offset;
  range.dest_count = 0;
  range.src_offset = static_cast<std::uint64_t>(kNowhere);
  const int objection = control(real_descriptor(fd), FIDEDUPERANGE, &range);
  if (objection < 0 && objection != -EINVAL) return objection;
  range.dest_count = static_cast<std::uint16_t>(count);
  range.src_offset = offset;
  ThroughMode from;
  std::array<ThroughMode, kDestinationsMax> to;
  if (const int error = enter(from, fd); error < 0) return error;
  std::array<std::int64_t, kDestinationsMax> given;
  for (std::size_t at = 0; at < count; ++at) {
    given[at] = range.info[at].dest_fd;
    const int to_fd = static_cast<int>(given[at]);
    if (const int error = enter(to[at], to_fd); error < 0) return error;
    range.info[at].dest_fd = real_descriptor(to_fd);
  }
  const int result = control(real_descriptor(fd), FIDEDUPERANGE, &range);
  if (result < 0) return result;
  for (std::size_t at = 0; at < count; ++at) range.info[at].dest_fd = given[at];
  if (user_copy(request, real.bytes.data(), bytes_of(count)) != 0) return -EFAULT;
  return result;
}

}  // namespace cairn
