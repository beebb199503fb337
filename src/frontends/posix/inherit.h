// SPDX-License-Identifier: Apache-2.0
// The first minutes of a program's life: which of the descriptors that it was born with are ours.
//
//   a placeholder with an entry in CAIRN_FDS   taken over as the entry says
//   a placeholder without one                  libc started the program by itself (popen): the
//                                              parent's description of the same file
//   a real descriptor of a managed file        opened outside the run (`cairn run app > out`), or
//                                              passed on by a program that is not intercepted: the
//                                              kernel serves the file while this process lives
//
// Thread safety: once, from the constructor, after the session was configured.
#pragma once

namespace cairn {

// Removes CAIRN_FDS from `environment`.
void inherit_descriptors(char** environment);

}  // namespace cairn
