// SPDX-License-Identifier: Apache-2.0
// Descriptors that clients have sent and that did not arrive: the kernel throws one away for which
// the receiver has no number left (the limit was lowered, or more is open than was counted). Their
// senders take them for handed over, or are about to.
//
//   lost       nobody can store the file but its sender
//   -> fetched the sender's file was opened through /proc, as soon as there was a number for it
//   -> told    kObjectHandedOver is cleared once it was seen: the next process that writes or
//              closes the file hands it over anew or stores it
//   -> gone    the sender has ended, or has closed the file
//
// Thread safety: none; the thread that receives uses it. Ownership: borrows all.
#pragma once

#include <sys/types.h>

#include <functional>
#include <vector>

#include "service/write_back/descriptor_budget.h"
#include "service/write_back/store_files.h"

namespace cairn::node {

struct LostDescriptor {
  ObjectIndex object;
  Owner sender;
  // The process that sent the number, and its parent: the number is the parent's if the process was
  // a vfork child that has ended since.
  pid_t process;
  pid_t parent;
  int number;
  std::uint32_t run;
  bool has_told_sender = false;
};

class LostDescriptors {
 public:
  LostDescriptors(const NodeMemory& memory, DescriptorBudget& budget, StoreFiles& files)
      : memory_(memory), budget_(budget), files_(files) {}

  void add(const LostDescriptor& lost) { all_.push_back(lost); }
  // While there are any, they are to be tried again in short intervals.
  bool any() const { return !all_.empty(); }
  // `fetched` is called for each file that can be stored from here on.
  void try_again(const std::function<void(ObjectIndex)>& fetched);

 private:
  enum class Attempt : std::uint8_t { kFetched, kLater, kNever };
  Attempt fetch(const LostDescriptor& lost);
  Attempt open_of(pid_t process, const LostDescriptor& lost);
  void tell_sender(LostDescriptor& lost) const;

  const NodeMemory& memory_;
  DescriptorBudget& budget_;
  StoreFiles& files_;
  std::vector<LostDescriptor> all_;
};

}  // namespace cairn::node
