// SPDX-License-Identifier: Apache-2.0
// ioctl(), by the table in ioctl_table.h: on a buffered file, and with one in what it is given.
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "base/system_call.h"
#include "base/user_copy.h"
#include "frontends/descriptors/descriptor_table.h"
#include "frontends/descriptors/open_file.h"
#include "frontends/descriptors/twin_descriptor.h"
#include "frontends/files/file_io.h"
#include "frontends/files/file_shape.h"
#include "frontends/files/guard_change.h"
#include "frontends/files/through_mode.h"
#include "frontends/libc/hook.h"
#include "frontends/libc/real_calls.h"
#include "frontends/posix/descriptor_calls.h"
#include "frontends/posix/exec_plan.h"
#include "frontends/posix/ioctl_table.h"
#include "frontends/posix/late_calls.h"
#include "frontends/posix/shared_extents.h"

namespace cairn {
namespace real {
namespace {
constinit RealCall<int(int, unsigned long, ...)> ioctl{"ioctl"};
}  // namespace
}  // namespace real

namespace {

// One call. `file` is null where the descriptor itself is not buffered.
struct Request {
  int fd;
  OpenFile* file;
  unsigned long number;
  long argument;

  int real_fd() const { return file == nullptr ? fd : file->private_fd(); }
  template <typename T>
  T* pointer() const {
    return reinterpret_cast<T*>(argument);
  }
  int ask_kernel(long given) const {
    return static_cast<int>(sys::call(SYS_ioctl, real_fd(), static_cast<long>(number), given));
  }
  int ask_kernel() const { return ask_kernel(argument); }
};

// The structure of the request with the numbers that the kernel knows in it.
class Translated {
 public:
  // False when none of its descriptors is ours, or the kernel will find it as unreadable as we do.
  bool translate(const Request& request, const IoctlRule& rule) {
    CAIRN_DCHECK(rule.has_descriptor() && rule.bytes <= kIoctlBytesMax);
    rule_ = &rule;
    if (user_copy(bytes_.data(), request.pointer<void>(), rule.bytes) != 0) return false;
    bool is_ours = false;
    for (unsigned at = 0; at < files_.size(); ++at) {
      if (rule.descriptors[at] == kNoDescriptor) continue;
      files_[at] = DescriptorTable::find(number_at(request, rule.descriptors[at]));
      is_ours = is_ours || files_[at] != nullptr;
    }
    return is_ours;
  }
  int call(const Request& request) {
    CAIRN_DCHECK(rule_ != nullptr);
    long argument = rule_->bytes == 0 ? request.argument : sys::word(bytes_.data());
    for (unsigned at = 0; at < files_.size(); ++at) {
      if (files_[at] == nullptr) continue;
      const int real = files_[at]->private_fd();
      if (rule_->descriptors[at] == kIsArgument) {
        argument = real;
      } else {
        std::memcpy(place(rule_->descriptors[at]), &real, sizeof real);
      }
    }
    const int result = request.ask_kernel(argument);
    return give_back(request) ? result : -EFAULT;
  }
  const std::array<OpenFile*, 2>& files() const { return files_; }

 private:
  std::byte* place(DescriptorPlace offset) {
    CAIRN_DCHECK(offset >= 0 && offset + sizeof(int) <= rule_->bytes);
    return bytes_.data() + offset;
  }
  int number_at(const Request& request, DescriptorPlace offset) {
    if (offset == kIsArgument) return static_cast<int>(request.argument);
    int number = -1;
    std::memcpy(&number, place(offset), sizeof number);
    return number;
  }
  // The caller gets the kernel's answer in the structure, but for the descriptor numbers.
  bool give_back(const Request& request) {
    if ((_IOC_DIR(request.number) & _IOC_READ) == 0) return true;
    for (const DescriptorPlace offset : rule_->descriptors) {
      if (offset < 0) continue;
      auto* given = request.pointer<std::byte>() + offset;
      if (user_copy(place(offset), given, sizeof(int)) != 0) return false;
    }
    return user_copy(request.pointer<void>(), bytes_.data(), rule_->bytes) == 0;
  }

  const IoctlRule* rule_ = nullptr;
  std::array<OpenFile*, 2> files_ = {};
  alignas(8) std::array<std::byte, kIoctlBytesMax> bytes_ = {};
};

// The kernel works on the files as it pleases.
int leave_to_kernel(const Request& request, const IoctlRule& rule) {
  Translated translated;
  const bool has_ours = rule.has_descriptor() && translated.translate(request, rule);
  std::array<ThroughMode, 3> modes;
  if (request.file != nullptr) {
    if (const int error = modes[0].enter(*request.file); error < 0) return error;
  }
  if (!has_ours) return request.ask_kernel();
  for (unsigned at = 0; at < translated.files().size(); ++at) {
    OpenFile* file = translated.files()[at];
    if (file == nullptr) continue;
    if (const int error = modes[at + 1].enter(*file); error < 0) return error;
    // Before the call: a process that is killed right after it has told nobody.
    if (rule.keeps_descriptor) modes[at + 1].keep_for_good();
  }
  const int result = translated.call(request);
  if (result < 0)
    std::for_each(modes.begin(), modes.end(), [](ThroughMode& mode) { mode.failed(); });
  return result;
}

// Takes struct space_resv; `mode` is that of the fallocate() with the same effect.
int reserve(const Request& request, int mode) {
  struct {
    std::int16_t type, whence;
    std::int64_t start, length;
  } range;
  static_assert(sizeof range == 24, "the beginning of the kernel's struct space_resv");
  if (user_copy(&range, request.pointer<void>(), sizeof range) != 0) return -EFAULT;
  std::int64_t base = 0;
  if (range.whence == SEEK_CUR) {
    base = file_seek(*request.file, 0, SEEK_CUR);
  } else if (range.whence == SEEK_END) {
    base = file_size(*request.file);
  } else if (range.whence != SEEK_SET) {
    return -EINVAL;
  }
  if (base < 0) return static_cast<int>(base);
  // A sum past the end of all numbers is negative, which no file has.
  std::int64_t start = 0;
  if (__builtin_add_overflow(base, range.start, &start)) start = -1;
  return file_allocate(*request.file, mode | FALLOC_FL_KEEP_SIZE, start, range.length);
}

int bytes_left(const Request& request) {
  const off_t here = file_seek(*request.file, 0, SEEK_CUR);
  const auto left = static_cast<int>(file_size(*request.file) - here);
  return put_user(request.pointer<int>(), left) ? 0 : -EFAULT;
}

// The private descriptor has no O_APPEND and no O_DIRECT, but these flags as the program's has.
int set_status_flag(const Request& request) {
  const int result = request.ask_kernel();
  if (result < 0) return result;
  const int now = sys::fcntl(request.real_fd(), F_GETFL);
  std::atomic<std::uint32_t>& flags = request.file->description->flags;
  std::uint32_t seen = flags.load(std::memory_order_relaxed);
  const auto wanted = static_cast<std::uint32_t>(now) & O_NONBLOCK;
  while (!flags.compare_exchange_weak(seen, (seen & ~std::uint32_t{O_NONBLOCK}) | wanted)) {
  }
  const long others = request.file->flags() & ~std::uint32_t{O_NONBLOCK};
  (void)set_flags_of_twin(*request.file, others | static_cast<long>(wanted));
  return result;
}

// chattr +a and +i: processes that have the file open meet them at the next write, if the file
// system says so.
bool sets_guarding_attribute(const Request& request) {
  if (request.number == FS_IOC_FSSETXATTR) {
    fsxattr wanted;
    return get_user(&wanted, request.pointer<const fsxattr>()) &&
           (wanted.fsx_xflags & (FS_XFLAG_APPEND | FS_XFLAG_IMMUTABLE)) != 0;
  }
  int wanted = 0;
  return get_user(&wanted, request.pointer<const int>()) &&
         (wanted & (FS_APPEND_FL | FS_IMMUTABLE_FL)) != 0;
}

int set_attributes(const Request& request, const IoctlRule& rule) {
  const GuardChange guard(request.file, sets_guarding_attribute(request));
  return leave_to_kernel(request, rule);
}

// The service stores the dirty blocks of the file and gives up its descriptor of it.
int without_writer(const Request& request, const IoctlRule& rule) {
  store_before_use(request.file->private_fd());
  return leave_to_kernel(request, rule);
}

int control_file(const Request& request, const IoctlRule& rule) {
  CAIRN_DCHECK(request.file != nullptr);
  switch (rule.effect) {
    case IoctlEffect::kHarmless:
      return request.ask_kernel();
    case IoctlEffect::kReadsStore:
      if (const int error = file_sync(*request.file, false); error < 0) return error;
      return request.ask_kernel();
    case IoctlEffect::kCloseOnExec:
    case IoctlEffect::kNoCloseOnExec:
      return set_descriptor_flags(request.fd, *request.file,
                                  rule.effect == IoctlEffect::kCloseOnExec ? FD_CLOEXEC : 0);
    case IoctlEffect::kSetsStatusFlags:
      return set_status_flag(request);
    case IoctlEffect::kBytesLeft:
      return bytes_left(request);
    case IoctlEffect::kReserves:
      return reserve(request, 0);
    case IoctlEffect::kPunches:
      return reserve(request, FALLOC_FL_PUNCH_HOLE);
    case IoctlEffect::kZeroes:
      return reserve(request, FALLOC_FL_ZERO_RANGE);
    case IoctlEffect::kSetsAttributes:
      return set_attributes(request, rule);
    case IoctlEffect::kWantsNoWriter:
      return without_writer(request, rule);
    default:
      return leave_to_kernel(request, rule);
  }
}

// Extents that two files share; either may be the one that is buffered.
int share_extents(const Request& request, IoctlEffect effect) {
  if (effect == IoctlEffect::kClones)
    return clone_file(request.fd, static_cast<int>(request.argument));
  if (effect == IoctlEffect::kClonesRange) {
    file_clone_range range;
    if (!get_user(&range, request.pointer<const file_clone_range>())) return -EFAULT;
    return clone_range(request.fd, range);
  }
  return deduplicate(request.fd, request.pointer<file_dedupe_range>());
}

int control(const Request& request, const IoctlRule& rule) {
  switch (rule.effect) {
    case IoctlEffect::kClones:
    case IoctlEffect::kClonesRange:
    case IoctlEffect::kDeduplicates:
      return share_extents(request, rule.effect);
    case IoctlEffect::kFreezesStore:
      store_everything();
      break;
    default:
      break;
  }
  if (request.file != nullptr) return control_file(request, rule);
  return rule.has_descriptor() ? leave_to_kernel(request, rule) : request.ask_kernel();
}

}  // namespace
}  // namespace cairn

using cairn::DescriptorTable;

CAIRN_HOOK(int, ioctl, (int fd, unsigned long number, ...)) {
  va_list arguments;
  va_start(arguments, number);
  const long argument = va_arg(arguments, long);
  va_end(arguments);
  const cairn::IoctlRule rule = cairn::ioctl_rule(number);
  if (DescriptorTable::find(fd) == nullptr && !rule.concerns_others())
    return cairn::real::ioctl(fd, number, argument);
  return cairn::with_open_file(fd, [&](cairn::OpenFile* file, int) {
    const cairn::Request request{fd, file, rule.request, argument};
    return cairn::with_errno(cairn::control(request, rule));
  });
}
