// SPDX-License-Identifier: Apache-2.0
#include "frontends/processes/exec_table.h"

#include "base/check.h"
#include "frontends/descriptors/descriptor_table.h"
#include "memory/arena/owner.h"

namespace cairn {
namespace {

constexpr std::uint64_t kVersion = 3;
// Descriptors that may be missing count from 1, so that "none" (-1) needs no sign.
constexpr std::uint64_t kNumberOfNone = 0;

// A decimal number up to `maximum`, then `behind`. False leaves `*text` anywhere.
bool take_number(const char** text, std::uint64_t maximum, char behind, std::uint64_t* number) {
  const char* next = *text;
  std::uint64_t value = 0;
  if (*next < '0' || *next > '9') return false;
  for (; *next >= '0' && *next <= '9'; ++next) {
    value = value * 10 + static_cast<std::uint64_t>(*next - '0');
    if (value > maximum) return false;
  }
  if (*next != behind) return false;
  *text = next + 1;
  *number = value;
  return true;
}

}  // namespace

ExecTableWriter::ExecTableWriter(char* buffer, std::size_t capacity, const ExecTableHeader& header)
    : buffer_(buffer), capacity_(capacity) {
  CAIRN_CHECK(capacity >= kHeaderBytesMax);
  append(kVersion, ',');
  append(static_cast<std::uint32_t>(header.pid), ',');
  append(header.owner, ';');
  buffer_[size_] = '\0';
}

bool ExecTableWriter::add(const ExecTableEntry& entry) {
  if (capacity_ - size_ <= kEntryBytesMax) {
    is_complete_ = false;
    return false;
  }
  append(static_cast<std::uint32_t>(entry.fd), ',');
  append(entry.description, ',');
  append(entry.generation, ',');
  append_descriptor(entry.private_fd);
  append_descriptor(entry.twin_fd);
  append(entry.is_locked ? 1 : 0, ',');
  append(entry.hold, ';');
  CAIRN_DCHECK(size_ < capacity_);
  buffer_[size_] = '\0';
  return true;
}

void ExecTableWriter::append_descriptor(std::int32_t fd) {
  const bool is_none = fd < 0 || fd >= DescriptorTable::kDescriptorsMax;
  append(is_none ? kNumberOfNone : static_cast<std::uint64_t>(fd) + 1, ',');
}

void ExecTableWriter::append(std::uint64_t number, char behind) {
  char digits[20];
  unsigned count = 0;
  do {
    digits[count++] = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number != 0);
  while (count > 0) buffer_[size_++] = digits[--count];
  buffer_[size_++] = behind;
}

ExecTableReader::ExecTableReader(const char* text) {
  if (text == nullptr) return;
  std::uint64_t version = 0;
  std::uint64_t pid = 0;
  std::uint64_t owner = 0;
  if (!take_number(&text, kVersion, ',', &version) || version != kVersion ||
      !take_number(&text, INT32_MAX, ',', &pid) || !take_number(&text, Owner::kMask, ';', &owner)) {
    return;
  }
  header_ = ExecTableHeader{static_cast<std::int32_t>(pid), static_cast<std::uint32_t>(owner)};
  next_ = text;
  is_valid_ = true;
}

bool ExecTableReader::next(ExecTableEntry* entry) {
  if (next_ == nullptr || *next_ == '\0') return false;
  std::uint64_t fd = 0;
  std::uint64_t description = 0;
  std::uint64_t generation = 0;
  std::uint64_t private_fd = 0;
  std::uint64_t twin_fd = 0;
  std::uint64_t is_locked = 0;
  std::uint64_t hold = 0;
  if (!take_number(&next_, DescriptorTable::kDescriptorsMax - 1, ',', &fd) ||
      !take_number(&next_, UINT32_MAX, ',', &description) ||
      !take_number(&next_, UINT32_MAX, ',', &generation) ||
      !take_number(&next_, INT32_MAX, ',', &private_fd) ||
      !take_number(&next_, INT32_MAX, ',', &twin_fd) || !take_number(&next_, 1, ',', &is_locked) ||
      !take_number(&next_, UINT32_MAX, ';', &hold)) {
    next_ = nullptr;
    is_valid_ = false;
    return false;
  }
  entry->fd = static_cast<std::int32_t>(fd);
  entry->description = static_cast<std::uint32_t>(description);
  entry->generation = static_cast<std::uint32_t>(generation);
  entry->private_fd = static_cast<std::int32_t>(private_fd) - 1;
  entry->twin_fd = static_cast<std::int32_t>(twin_fd) - 1;
  entry->is_locked = is_locked != 0;
  entry->hold = static_cast<std::uint32_t>(hold);
  return true;
}

}  // namespace cairn
