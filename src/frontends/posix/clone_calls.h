// SPDX-License-Identifier: Apache-2.0
// Processes that are made with a choice of what they share with their maker (clone(2)).
//
// Thread safety: any thread.
#pragma once

namespace cairn {

// Before the kernel makes a process with these CLONE_* flags, or takes apart what threads share
// (unshare(2)).
void before_clone(unsigned long flags);
void before_unshare(unsigned long flags);
// clone3(2): the flags are the first word of its arguments, which may lie anywhere.
void before_clone3(const void* arguments, unsigned long size);

}  // namespace cairn
