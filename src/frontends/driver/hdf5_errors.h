// SPDX-License-Identifier: Apache-2.0
// Why a call of the driver has failed, on the stack of errors of the HDF5 that has called.
//
// The driver links no HDF5, and serves all that a process has. An address in the caller says which
// one it is; its functions and error numbers are looked up when an error is to be told. A program
// that is linked statically to HDF5, and does not export it, gets the failure without its reason.
//
// Thread safety: each thread has a stack of its own.
#pragma once

#include <stddef.h>

namespace cairn::driver {

// Where a callback has been called from: an address in the library.
#define CAIRN_DRIVER_CALLER __builtin_return_address(0)

// HDF5's own classes of errors, by the names of its variables.
struct FailureKind {
  const char* major;
  const char* minor;
};

void push_error(const void* caller, FailureKind kind, const char* text);
// The same with errno and its meaning behind the text, in the words of HDF5's own drivers: h5py
// reads the number there.
void push_system_error(const void* caller, FailureKind kind, const char* text);

// A function of the library that the address lies in; null where it has none of that name.
void* function_of_caller(const void* caller, const char* name);

}  // namespace cairn::driver
