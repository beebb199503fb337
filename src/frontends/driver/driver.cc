// SPDX-License-Identifier: Apache-2.0
// The virtual file driver `cairn`, which HDF5 loads into programs that choose it:
//
//   HDF5_DRIVER=cairn HDF5_PLUGIN_PATH=.../lib/cairn/hdf5
//   H5Pset_driver_by_name(properties, "cairn", NULL)
//
// It does what HDF5's own driver (sec2) does, with calls that go through the node's buffer
// (file_calls.h): the files, the errors and their texts are the same. All versions of HDF5 from
// 1.14 on have version 1 of the class, so that one class serves all libraries of a process.
//
// Thread safety: HDF5's lock.
#include <H5PLextern.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>

#include "base/check.h"
#include "frontends/driver/driven_file.h"
#include "frontends/driver/file_calls.h"
#include "frontends/driver/hdf5_errors.h"

namespace cairn::driver {
namespace {

static_assert(H5FD_CLASS_VERSION == 1, "HDF5 1.14 and 2.x have version 1 of the class of a driver");

// Numbers of 256 to 511 are for drivers that are not registered with the HDF Group. Property lists
// name a driver by it, so it never changes.
constexpr H5FD_class_value_t kDriverValue = 431;
constexpr char kDriverName[] = "cairn";
// The configuration with which a close does not wait for the backing store.
constexpr char kAsync[] = "async";

constexpr haddr_t kAddressMax = static_cast<haddr_t>(LLONG_MAX);
constexpr mode_t kModeOfNewFiles = 0666;

// As H5F_ACC_*: those are macros that call HDF5.
constexpr unsigned kReadWrite = 0x0001;
constexpr unsigned kTruncate = 0x0002;
constexpr unsigned kExclusive = 0x0004;
constexpr unsigned kCreate = 0x0010;

constexpr FailureKind kBadValue{"H5E_ARGS_g", "H5E_BADVALUE_g"};
constexpr FailureKind kBadRange{"H5E_ARGS_g", "H5E_BADRANGE_g"};
constexpr FailureKind kOverflow{"H5E_ARGS_g", "H5E_OVERFLOW_g"};
constexpr FailureKind kCannotOpen{"H5E_FILE_g", "H5E_CANTOPENFILE_g"};
constexpr FailureKind kBadFile{"H5E_FILE_g", "H5E_BADFILE_g"};
constexpr FailureKind kNoMemory{"H5E_RESOURCE_g", "H5E_NOSPACE_g"};
constexpr FailureKind kCannotClose{"H5E_IO_g", "H5E_CANTCLOSEFILE_g"};
constexpr FailureKind kCannotRead{"H5E_IO_g", "H5E_READERROR_g"};
constexpr FailureKind kCannotWrite{"H5E_IO_g", "H5E_WRITEERROR_g"};
constexpr FailureKind kCannotExtend{"H5E_IO_g", "H5E_SEEKERROR_g"};
constexpr FailureKind kCannotLock{"H5E_VFL_g", "H5E_CANTLOCKFILE_g"};
constexpr FailureKind kCannotUnlock{"H5E_VFL_g", "H5E_CANTUNLOCKFILE_g"};
constexpr FailureKind kCannotDelete{"H5E_VFL_g", "H5E_CANTDELETEFILE_g"};
constexpr FailureKind kNoSuchRequest{"H5E_VFL_g", "H5E_FCNTL_g"};

// HDF5 prescribes the parameters of its callbacks, of which some have six.
#define CAIRN_DRIVER_CALLBACK(result, name, parameters) result name parameters

// ---- opening

// Whether a range of addresses cannot be one of a file.
bool overflows(haddr_t address, size_t size) {
  return address > kAddressMax || size > kAddressMax || address + size > kAddressMax;
}

bool has_good_arguments(const char* name, haddr_t address_max, const void* caller) {
  if (name == nullptr || *name == '\0') {
    push_error(caller, kBadValue, "invalid file name");
  } else if (address_max == 0 || address_max == HADDR_UNDEF) {
    push_error(caller, kBadRange, "bogus maxaddr");
  } else if (address_max > kAddressMax) {
    push_error(caller, kOverflow, "bogus maxaddr");
  } else {
    return true;
  }
  return false;
}

int open_flags(unsigned flags) {
  int result = (flags & kReadWrite) != 0 ? O_RDWR : O_RDONLY;
  if ((flags & kTruncate) != 0) result |= O_TRUNC;
  if ((flags & kCreate) != 0) result |= O_CREAT;
  if ((flags & kExclusive) != 0) result |= O_EXCL;
  return result;
}

void tell_open_error(const char* name, unsigned flags, const void* caller) {
  const int error = errno;
  char text[2 * PATH_MAX];
  snprintf(text, sizeof text,
           "unable to open file: name = '%s', errno = %d, error message = '%s', flags = %x, "
           "o_flags = %x",
           name, error, strerror(error), flags, static_cast<unsigned>(open_flags(flags)));
  push_error(caller, kCannotOpen, text);
}

// What HDF5 knows as two properties of the list, and a variable that counts before one of them.
void read_properties(DrivenFile& file, hid_t properties, const void* caller) {
  const auto locking = reinterpret_cast<decltype(&::H5Pget_file_locking)>(
      function_of_caller(caller, "H5Pget_file_locking"));
  const char* variable = getenv("HDF5_USE_FILE_LOCKING");
  bool is_used = false;
  if (locking == nullptr || locking(properties, &is_used, &file.ignores_missing_locks) < 0)
    file.ignores_missing_locks = false;
  if (variable != nullptr && strcmp(variable, "BEST_EFFORT") == 0) {
    file.ignores_missing_locks = true;
  } else if (variable != nullptr && (strcmp(variable, "TRUE") == 0 || strcmp(variable, "1") == 0)) {
    file.ignores_missing_locks = false;
  }

  const auto exists =
      reinterpret_cast<decltype(&::H5Pexist)>(function_of_caller(caller, "H5Pexist"));
  const auto get = reinterpret_cast<decltype(&::H5Pget)>(function_of_caller(caller, "H5Pget"));
  constexpr char kFamilyToSingle[] = "family_to_single";
  if (exists != nullptr && get != nullptr && exists(properties, kFamilyToSingle) > 0)
    get(properties, kFamilyToSingle, &file.ignores_driver_info);
}

bool is_async(hid_t properties, const void* caller) {
  const auto get = reinterpret_cast<decltype(&::H5Pget_driver_config_str)>(
      function_of_caller(caller, "H5Pget_driver_config_str"));
  char text[sizeof kAsync + 1] = "";
  if (get != nullptr) return get(properties, text, sizeof text) > 0 && strcmp(text, kAsync) == 0;
  const char* variable = getenv("HDF5_DRIVER_CONFIG");
  return variable != nullptr && strcmp(variable, kAsync) == 0;
}

// -1 with an error on the caller's stack.
int open_descriptor(const char* name, unsigned flags, const void* caller) {
  const FileCalls& calls = file_calls();
  const QuietCall quiet(calls);
  // A child without the node could not use the descriptor.
  const int private_flag = calls.store != nullptr ? O_CLOEXEC : 0;
  const int fd = calls.open(name, open_flags(flags) | private_flag, kModeOfNewFiles);
  if (fd < 0) tell_open_error(name, flags, caller);
  return fd;
}

H5FD_t* open_file(const char* name, unsigned flags, hid_t properties, haddr_t address_max) {
  const void* const caller = CAIRN_DRIVER_CALLER;
  if (!has_good_arguments(name, address_max, caller)) return nullptr;
  const int fd = open_descriptor(name, flags, caller);
  if (fd < 0) return nullptr;
  const FileCalls& calls = file_calls();
  struct stat status{};
  auto* file = static_cast<DrivenFile*>(calloc(1, sizeof(DrivenFile)));
  bool is_known = false;
  {
    const QuietCall quiet(calls);
    is_known = calls.fstat(fd, &status) == 0;
    const int error = errno;
    if (!is_known || file == nullptr) calls.close(fd);
    errno = error;
  }
  if (!is_known) push_system_error(caller, kBadFile, "unable to fstat file");
  if (is_known && file == nullptr) push_error(caller, kNoMemory, "unable to allocate file struct");
  if (!is_known || file == nullptr) {
    free(file);
    return nullptr;
  }
  file->descriptor = fd;
  file->device = status.st_dev;
  file->inode = status.st_ino;
  file->end = static_cast<haddr_t>(status.st_size);
  strncpy(file->name, name, sizeof file->name - 1);
  read_properties(*file, properties, caller);
  file->is_stored_early = calls.store != nullptr && !is_async(properties, caller);
  // An open that has cut a file changed it, and one that has made it.
  file->has_changed = (flags & (kTruncate | kCreate)) != 0;
  return &file->librarys.file;
}

// ---- closing

// 0 or -errno.
int store_changes(DrivenFile& file) {
  if (!file.is_stored_early || !file.has_changed) return 0;
  const FileCalls& calls = file_calls();
  const QuietCall quiet(calls);
  const int result = calls.store(file.descriptor);
  if (result == 0) file.has_changed = false;
  return result;
}

herr_t flush_file(H5FD_t* opened, hid_t, bool is_closing) {
  const int result = is_closing ? 0 : store_changes(driven(opened));
  if (result == 0) return 0;
  errno = -result;
  push_system_error(CAIRN_DRIVER_CALLER, kCannotWrite, "unable to store file");
  return -1;
}

herr_t close_file(H5FD_t* opened) {
  DrivenFile& file = driven(opened);
  const FileCalls& calls = file_calls();
  const int stored = store_changes(file);
  int closed = 0;
  {
    const QuietCall quiet(calls);
    closed = calls.close(file.descriptor) == 0 ? 0 : -errno;
  }
  free(&file);
  if (stored == 0 && closed == 0) return 0;
  errno = stored != 0 ? -stored : -closed;
  push_system_error(CAIRN_DRIVER_CALLER, kCannotClose, "unable to close file");
  return -1;
}

// ---- what HDF5 asks

int compare_files(const H5FD_t* one, const H5FD_t* other) {
  const DrivenFile& a = driven(one);
  const DrivenFile& b = driven(other);
  if (a.device != b.device) return a.device < b.device ? -1 : 1;
  if (a.inode != b.inode) return a.inode < b.inode ? -1 : 1;
  return 0;
}

// Those of sec2: they decide how HDF5 lays a file out.
herr_t query_features(const H5FD_t* file, unsigned long* flags) {
  if (flags == nullptr) return 0;
  *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
           H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_POSIX_COMPAT_HANDLE |
           H5FD_FEAT_SUPPORTS_SWMR_IO | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
  if (file != nullptr && driven(file).ignores_driver_info) *flags |= H5FD_FEAT_IGNORE_DRVRINFO;
  return 0;
}

haddr_t get_allocated_end(const H5FD_t* file, H5FD_mem_t) { return driven(file).allocated_end; }

herr_t set_allocated_end(H5FD_t* file, H5FD_mem_t, haddr_t end) {
  driven(file).allocated_end = end;
  return 0;
}

haddr_t get_end(const H5FD_t* file, H5FD_mem_t) { return driven(file).end; }

herr_t get_handle(H5FD_t* file, hid_t, void** handle) {
  if (handle == nullptr) {
    push_error(CAIRN_DRIVER_CALLER, kBadValue, "file handle not valid");
    return -1;
  }
  *handle = &driven(file).descriptor;
  return 0;
}

// ---- bytes

// One call of several that make up a read or write.
struct Transfer {
  const void* buffer;
  size_t left;
  haddr_t address;
};

void tell_transfer_error(const DrivenFile& file, const Transfer& transfer, bool is_write,
                         const void* caller) {
  const int error = errno;
  const time_t now = time(nullptr);
  char when[32] = "";
  char text[2 * PATH_MAX];
  if (ctime_r(&now, when) != nullptr) when[strcspn(when, "\n")] = '\0';
  snprintf(text, sizeof text,
           "file %s failed: time = %s, filename = '%s', file descriptor = %d, errno = %d, error "
           "message = '%s', buf = %p, total %s size = %zu, bytes this sub-%s = %zu, offset = %llu",
           is_write ? "write" : "read", when, file.name, file.descriptor, error, strerror(error),
           transfer.buffer, is_write ? "write" : "read", transfer.left, is_write ? "write" : "read",
           transfer.left, static_cast<unsigned long long>(transfer.address));
  push_error(caller, is_write ? kCannotWrite : kCannotRead, text);
}

bool is_range_of_file(haddr_t address, size_t size, const void* caller) {
  char text[80];
  const auto number = static_cast<unsigned long long>(address);
  if (address == HADDR_UNDEF) {
    snprintf(text, sizeof text, "addr undefined, addr = %llu", number);
    push_error(caller, kBadValue, text);
    return false;
  }
  if (!overflows(address, size)) return true;
  snprintf(text, sizeof text, "addr overflow, addr = %llu, size = %zu", number, size);
  push_error(caller, kOverflow, text);
  return false;
}

CAIRN_DRIVER_CALLBACK(herr_t, read_bytes,
                      (H5FD_t * opened, H5FD_mem_t, hid_t, haddr_t address, size_t size,
                       void* buffer)) {
  const void* const caller = CAIRN_DRIVER_CALLER;
  const DrivenFile& file = driven(opened);
  if (!is_range_of_file(address, size, caller)) return -1;
  const FileCalls& calls = file_calls();
  auto* to = static_cast<char*>(buffer);
  while (size > 0) {
    ssize_t done = 0;
    {
      const QuietCall quiet(calls);
      done = calls.pread(file.descriptor, to, size, static_cast<off_t>(address));
    }
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) {
      tell_transfer_error(file, {to, size, address}, false, caller);
      return -1;
    }
    if (done == 0) {
      // Behind the end of the file HDF5's addresses go on.
      memset(to, 0, size);
      break;
    }
    to += done;
    size -= static_cast<size_t>(done);
    address += static_cast<haddr_t>(done);
  }
  return 0;
}

CAIRN_DRIVER_CALLBACK(herr_t, write_bytes,
                      (H5FD_t * opened, H5FD_mem_t, hid_t, haddr_t address, size_t size,
                       const void* buffer)) {
  const void* const caller = CAIRN_DRIVER_CALLER;
  DrivenFile& file = driven(opened);
  if (!is_range_of_file(address, size, caller)) return -1;
  const FileCalls& calls = file_calls();
  const auto* from = static_cast<const char*>(buffer);
  file.has_changed = true;
  while (size > 0) {
    ssize_t done = 0;
    {
      const QuietCall quiet(calls);
      done = calls.pwrite(file.descriptor, from, size, static_cast<off_t>(address));
    }
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) {
      tell_transfer_error(file, {from, size, address}, true, caller);
      return -1;
    }
    CAIRN_DCHECK(static_cast<size_t>(done) <= size);
    from += done;
    size -= static_cast<size_t>(done);
    address += static_cast<haddr_t>(done);
  }
  if (address > file.end) file.end = address;
  return 0;
}

herr_t truncate_file(H5FD_t* opened, hid_t, bool) {
  DrivenFile& file = driven(opened);
  if (file.allocated_end == file.end) return 0;
  const FileCalls& calls = file_calls();
  int result = 0;
  {
    const QuietCall quiet(calls);
    result = calls.ftruncate(file.descriptor, static_cast<off_t>(file.allocated_end));
  }
  if (result != 0) {
    push_system_error(CAIRN_DRIVER_CALLER, kCannotExtend, "unable to extend file properly");
    return -1;
  }
  file.has_changed = true;
  file.end = file.allocated_end;
  return 0;
}

// ---- locks and names

// 0 where the file system has no locks and HDF5 does not insist on them.
int change_lock(const DrivenFile& file, int operation) {
  const FileCalls& calls = file_calls();
  const QuietCall quiet(calls);
  const int result = calls.flock(file.descriptor, operation);
  return result != 0 && errno == ENOSYS && file.ignores_missing_locks ? 0 : result;
}

herr_t lock_file(H5FD_t* file, bool is_for_writing) {
  if (change_lock(driven(file), (is_for_writing ? LOCK_EX : LOCK_SH) | LOCK_NB) == 0) return 0;
  push_system_error(CAIRN_DRIVER_CALLER, kCannotLock, "unable to lock file");
  return -1;
}

herr_t unlock_file(H5FD_t* file) {
  if (change_lock(driven(file), LOCK_UN) == 0) return 0;
  push_system_error(CAIRN_DRIVER_CALLER, kCannotUnlock, "unable to unlock file");
  return -1;
}

herr_t delete_file(const char* name, hid_t) {
  const FileCalls& calls = file_calls();
  int result = 0;
  {
    const QuietCall quiet(calls);
    result = calls.remove(name);
  }
  if (result == 0) return 0;
  push_system_error(CAIRN_DRIVER_CALLER, kCannotDelete, "unable to delete file");
  return -1;
}

herr_t control(H5FD_t*, uint64_t, uint64_t flags, const void*, void**) {
  if ((flags & H5FD_CTL_FAIL_IF_UNKNOWN_FLAG) == 0) return 0;
  push_error(CAIRN_DRIVER_CALLER, kNoSuchRequest,
             "unknown op_code and fail if unknown flag is set");
  return -1;
}

// clang-format would put all of it on as few lines as possible.
// clang-format off
constexpr H5FD_class_t kClass = {
    .version = H5FD_CLASS_VERSION,
    .value = kDriverValue,
    .name = kDriverName,
    .maxaddr = kAddressMax,
    .fc_degree = H5F_CLOSE_WEAK,
    .open = open_file,
    .close = close_file,
    .cmp = compare_files,
    .query = query_features,
    .get_eoa = get_allocated_end,
    .set_eoa = set_allocated_end,
    .get_eof = get_end,
    .get_handle = get_handle,
    .read = read_bytes,
    .write = write_bytes,
    .flush = flush_file,
    .truncate = truncate_file,
    .lock = lock_file,
    .unlock = unlock_file,
    .del = delete_file,
    .ctl = control,
    .fl_map = H5FD_FLMAP_DICHOTOMY};
// clang-format on

}  // namespace
}  // namespace cairn::driver

// The two functions that HDF5 looks up in a plugin; the linker exports no others
// (frontends/hdf5/plugin.map).
extern "C" {

H5PL_type_t H5PLget_plugin_type() { return H5PL_TYPE_VFD; }

const void* H5PLget_plugin_info() {
  cairn::driver::note_place();
  return &cairn::driver::kClass;
}

}  // extern "C"
