// SPDX-License-Identifier: Apache-2.0
// System calls that are known by their number rather than by a function of libc
// (raw_syscall_calls.cc).
//
// All return a result or -errno. Thread safety: any thread.
#pragma once

namespace cairn {

struct RawArguments {
  long word[6];

  template <typename T>
  T* pointer(int index) const {
    return reinterpret_cast<T*>(word[index]);
  }
  int number(int index) const { return static_cast<int>(word[index]); }
  unsigned long size(int index) const { return static_cast<unsigned long>(word[index]); }
};

// Those that carry AT_EMPTY_PATH and so may mean their first argument, a descriptor, itself.
long call_at(long number, const RawArguments& arguments);
// Those whose first argument is a descriptor through which the kernel is to read the file.
long call_on_file(long number, const RawArguments& arguments);

long open_with_rules(const RawArguments& arguments);
long open_handle(int mount, void* handle, int flags);
long get_descriptor(int process, int target, unsigned flags);
long open_tree_managed(int directory, const char* path, unsigned flags);
long set_times_raw(const RawArguments& arguments);

}  // namespace cairn
