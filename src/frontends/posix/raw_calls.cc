// SPDX-License-Identifier: Apache-2.0
#include "frontends/posix/raw_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>

#include "base/system_call.h"
#include "base/user_copy.h"
#include "frontends/client/opening_guard.h"
#include "frontends/descriptors/descriptor_table.h"
#include "frontends/descriptors/open_file.h"
#include "frontends/files/file_io.h"
#include "frontends/files/file_opening.h"
#include "frontends/libc/hook.h"
#include "frontends/paths/buffer_candidate.h"
#include "frontends/posix/late_calls.h"
#include "frontends/posix/raw_syscall_table.h"
#include "frontends/posix/times.h"

namespace cairn {
namespace {

long pass_on(long number, const RawArguments& a) {
  return sys::call(number, a.word[0], a.word[1], a.word[2], a.word[3], a.word[4], a.word[5]);
}

// Where a call has its AT_* flags.
int flags_at(long number) {
  switch (number) {
    case SYS_fchmodat2:
      return 3;
    case SYS_file_getattr:
    case SYS_file_setattr:
      return 4;
    default:
      return 2;
  }
}

bool changes_attributes(long number) {
  return number == SYS_fchmodat2 || number == SYS_file_setattr || number == SYS_setxattrat ||
         number == SYS_removexattrat;
}

}  // namespace

long call_at(long number, const RawArguments& arguments) {
  const int flags = arguments.number(flags_at(number));
  const auto* path = arguments.pointer<const char>(1);
  char first = '\0';
  const bool is_empty = (flags & AT_EMPTY_PATH) != 0 &&
                        (path == nullptr || (get_user(&first, path) && first == '\0'));
  const auto call = [&](OpenFile* file, int real) {
    RawArguments changed = arguments;
    changed.word[0] = real;
    const long result = pass_on(number, changed);
    if (result < 0 || !changes_attributes(number)) return result;
    if (file != nullptr) {
      adopt_kernel_times(*file);
    } else if (path != nullptr) {
      adopt_kernel_times(real, path, flags & (AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH));
    }
    return result;
  };
  return is_empty ? with_open_file(arguments.number(0), call) : call(nullptr, arguments.number(0));
}

long call_on_file(long number, const RawArguments& arguments) {
  return with_open_file(arguments.number(0), [&](OpenFile* file, int real) -> long {
    if (file == nullptr) return pass_on(number, arguments);
    if (const int error = file_sync(*file, false); error < 0) return error;
    RawArguments changed = arguments;
    changed.word[0] = real;
    return pass_on(number, changed);
  });
}

// openat2() has no name in libc. The kernel resolves the path under the caller's rules, then we
// look at the file. The kernel judges the bytes behind the fields known here: it takes a longer
// structure whose rest is zero.
long open_with_rules(const RawArguments& arguments) {
  constexpr unsigned long kRulesMax = 256;
  const auto* rules = arguments.pointer<const char>(2);
  const unsigned long size = arguments.size(3);
  if (rules == nullptr || size < sizeof(open_how) || size > kRulesMax)
    return pass_on(SYS_openat2, arguments);
  alignas(open_how) char copy[kRulesMax];
  if (is_outside_user_space(rules, size) || user_copy(copy, rules, size) != 0) return -EFAULT;
  auto& changed = *reinterpret_cast<open_how*>(copy);
  const auto asked = static_cast<int>(changed.flags);
  const bool truncates = truncates_later(asked);
  if (truncates) changed.flags &= ~static_cast<std::uint64_t>(O_TRUNC);
  const auto* path = arguments.pointer<const char>(1);
  const OpeningGuard opening(
      opening_actor(arguments.number(0), path, static_cast<int>(changed.flags)));
  const long fd = sys::call(SYS_openat2, arguments.word[0], arguments.word[1], sys::word(copy),
                            static_cast<long>(size));
  if (fd < 0) return fd;
  const int error = manage_opened(static_cast<int>(fd), static_cast<int>(changed.flags));
  if (error < 0) {
    sys::close(static_cast<int>(fd));
    return error;
  }
  if ((asked & O_TRUNC) == 0) return fd;
  OpenFile* const file = DescriptorTable::find(static_cast<int>(fd));
  return truncate_opened(static_cast<int>(fd), file, !truncates);
}

// The kernel's utimensat() without a path means the descriptor itself; libc's refuses that.
long set_times_raw(const RawArguments& arguments) {
  const int directory = arguments.number(0);
  const auto* times = arguments.pointer<const timespec>(2);
  const bool is_tracked = DescriptorTable::find(directory) != nullptr;
  if (arguments.word[1] != 0 || !is_tracked) {
    if (arguments.word[1] == 0) return pass_on(SYS_utimensat, arguments);
    const int result =
        ::utimensat(directory, arguments.pointer<const char>(1), times, arguments.number(3));
    return result < 0 ? -errno : result;
  }
  if (arguments.number(3) != 0) return -EINVAL;
  return ::futimens(directory, times) < 0 ? -errno : 0;
}

}  // namespace cairn
