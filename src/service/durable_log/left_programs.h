// SPDX-License-Identifier: Apache-2.0
// Programs that have outlived the node whose log is in a folder.
//
// A recovery beside them would put older bytes over those that they store without a node, past the
// log, so it waits for their end. The kernel knows which ones there are: those that have the node's
// memory mapped, which nothing but the end of a process or an exec undoes. The node leaves a note
// in the folder which memory that is, before a program can have it:
//
//   programs    one line: the start of the machine, and device and inode of the memory, as in
//               /proc/PID/maps
//
// Seen are the processes in this PID namespace whose maps the user may read.
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
// The node has ended, and nothing that a program does without it concerns the log.
void forget_programs(const std::string& folder);

// Those of the node that has left the note, if this start of the machine was its.
std::vector<LeftProgram> left_programs(const std::string& folder);
// Whether the machine has not been started anew since the node that has left the note.
bool is_of_this_start(const std::string& folder);
// Gives them a moment to end, as processes that were killed need. Errors: kUnavailable, with those
// that stay.
Status await_end_of_programs(const std::string& folder);

}  // namespace cairn::durable
