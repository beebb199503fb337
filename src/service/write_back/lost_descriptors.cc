// SPDX-License-Identifier: Apache-2.0
#include "service/write_back/lost_descriptors.h"

#include <errno.h>
#include <fcntl.h>

#include <string>

#include "base/descriptor_shortage.h"

namespace cairn::node {

void LostDescriptors::try_again(const std::function<void(ObjectIndex)>& fetched) {
  budget_.free_a_number();
  bool has_number = true;
  bool has_fetched = false;
  std::erase_if(all_, [&](LostDescriptor& lost) {
    if (files_.find(lost.object) != nullptr) return true;
    const Attempt attempt = has_number ? fetch(lost) : Attempt::kLater;
    if (attempt == Attempt::kFetched) {
      has_fetched = true;
      fetched(lost.object);
      return true;
    }
    if (attempt == Attempt::kLater) has_number = false;
    tell_sender(lost);
    const bool is_hopeless = attempt == Attempt::kNever && lost.has_told_sender;
    return is_hopeless || !memory_.owners().is_alive(lost.sender);
  });
  if (has_fetched) {
    budget_.measure();
  } else {
    budget_.keep_a_number();
  }
}

// The sender sets the flag after it has sent: it is cleared once it was seen, and not again,
// because then it speaks of another message.
void LostDescriptors::tell_sender(LostDescriptor& lost) const {
  Object& object = memory_.objects().at(lost.object);
  if (lost.has_told_sender || !object.has(kObjectHandedOver)) return;
  object.clear(kObjectHandedOver);
  lost.has_told_sender = true;
}

LostDescriptors::Attempt LostDescriptors::fetch(const LostDescriptor& lost) {
  const Attempt attempt = open_of(lost.process, lost);
  return attempt == Attempt::kNever && lost.parent != lost.process ? open_of(lost.parent, lost)
                                                                   : attempt;
}

LostDescriptors::Attempt LostDescriptors::open_of(pid_t process, const LostDescriptor& lost) {
  const std::string path =
      "/proc/" + std::to_string(process) + "/fd/" + std::to_string(lost.number);
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!fd) return is_short_of_descriptors(errno) ? Attempt::kLater : Attempt::kNever;
  // The number may be another file's by now: insert() looks.
  return files_.insert(lost.object, std::move(fd), budget_.of_open(), lost.run) ? Attempt::kFetched
                                                                                : Attempt::kNever;
}

}  // namespace cairn::node
