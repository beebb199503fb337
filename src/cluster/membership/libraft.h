// SPDX-License-Identifier: Apache-2.0
// The header of libraft, which is one of C and does not say so.
//
// Thread safety: none of its own.
#pragma once

extern "C" {
#include <raft.h>
}
