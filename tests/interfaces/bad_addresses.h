// SPDX-License-Identifier: Apache-2.0
// Addresses that are not good, and files in every state that a call may find them in.
//
// Thread safety: one thread. Ownership: what is mapped stays mapped until the process ends.
#pragma once

#include <fcntl.h>
#include <sys/types.h>

#include <cstddef>
#include <vector>

namespace scene {

inline constexpr std::size_t kPage = 4096;
inline constexpr std::size_t kFileBytes = 150'000;  // two blocks and a piece
inline constexpr off_t kPlace = 60'000;             // the calls begin here

char* map_pages(std::size_t count, int protection);

// Those with a distance have as many good bytes before the bad ones: letters, or zeros.
enum class Fill { kLetters, kZeros };

// How the file's bytes come to be where the call finds them.
enum class State { kResident, kMissing, kMapped, kHollow };

// Opens the file "f", which is made anew.
int file_in(State state, int flags);
unsigned checksum_of_file();

// Has the thread of the scenes note the signal that state_of_thread() raises.
void note_signals();
// "free", or the fault that a call left: a lock still held (the alarm ends it), or a blocked
// signal.
const char* state_of_thread(int fd);

struct Call {
  const char* name;
  ssize_t (*call)(int fd, char* address);
};

// Makes each call with each bad address, and prints what it gave and left.
void try_all(const std::vector<Call>& calls, State state, int flags = O_RDWR,
             Fill fill = Fill::kLetters);

}  // namespace scene
