// SPDX-License-Identifier: Apache-2.0
// Programs that have outlived the node whose log is in a folder.
//
// A recovery beside them would put older bytes over those that they store without a node, past the
// log, so it waits for their end. The kernel knows which ones there are: those that have the node's
// memory mapped, which nothing but the end of a process or an exec undoes. The node leaves a note
// in the folder which memory that is, before a program can have it:
//
//   programs    one line: the start of the machine, device and inode of the memory as in
//               /proc/PID/maps, and whether the log has records of an earlier start (0 or 1)
//
// Seen are the processes of this machine in this PID namespace whose maps the user may read.
//
// Thread safety: any thread; one recovery, or one node, of a log at a time.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace cairn::durable {

struct LeftProgram {
  int pid = 0;
  std::string name;  // of the command, as the kernel has it
};

// `memory`: a descriptor of the segment that all programs of the node map.
Status note_programs(const std::string& folder, int memory);
// The node has ended, and nothing that a program does without it concerns the log. Requires: the
// log has no records that are wanted.
void forget_programs(const std::string& folder);
// Some of the log stays for the next recovery.
void keep_programs(const std::string& folder);

// Those of the node that has left the note, if this start of the machine was its. Errors: there is
// no /proc to look at.
Result<std::vector<LeftProgram>> left_programs(const std::string& folder);
// Gives them a moment to end, as processes that were killed need. Errors: kUnavailable, with those
// that stay.
Status await_end_of_programs(const std::string& folder);
// Whether all of the log is of this start of the machine, as far as that is known.
bool is_of_this_start(const std::string& folder);

}  // namespace cairn::durable
