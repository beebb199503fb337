// SPDX-License-Identifier: Apache-2.0
// The table of inherited descriptors that a program leaves to the next one in its place: the text
// of CAIRN_FDS.
//
//   3,<pid>,<owner>;<fd>,<description>,<generation>,<private fd>,<twin>,<locked>,<hold>;...
//
// All numbers are decimal.
//
// `pid` and `owner` are those of the process whose attachment owns the holds: the program itself
// before exec, the parent for a spawned child. The text comes from the environment, so nothing
// trusts it: the reader takes an entry only if it parses completely and lies in range, and the
// caller checks each entry against the shared tables.
//
// Thread safety: values. No allocation: the writer also runs in a vfork child.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cairn {

inline constexpr char kExecTableVariable[] = "CAIRN_FDS";

struct ExecTableHeader {
  std::int32_t pid = 0;
  std::uint32_t owner = 0;  // Owner::bits()
};

struct ExecTableEntry {
  std::int32_t fd = -1;
  std::uint32_t description = 0;
  std::uint32_t generation = 0;
  std::int32_t private_fd = -1;  // -1: none was passed on
  std::int32_t twin_fd = -1;     // -1: there is none
  bool is_locked = false;        // the process may have fcntl() locks on the file
  std::uint32_t hold = 0;        // 0: none could be made
};

// Writes into a buffer of the caller's. When it is full, further entries are left out and
// is_complete() turns false.
class ExecTableWriter {
 public:
  // Requires: capacity >= kHeaderBytesMax.
  ExecTableWriter(char* buffer, std::size_t capacity, const ExecTableHeader& header);
  bool add(const ExecTableEntry& entry);
  bool is_complete() const { return is_complete_; }
  // NUL-terminated.
  const char* text() const { return buffer_; }
  std::size_t size() const { return size_; }

  static constexpr std::size_t kHeaderBytesMax = 32;
  static constexpr std::size_t kEntryBytesMax = 60;
  // Three descriptors, three numbers of 32 bits and a flag, each with the character behind it, and
  // the end of the text. An exec has this on its stack for each file.
  static constexpr std::size_t kNumberBytesMax = 10 + 1;
  static constexpr std::size_t kDescriptorBytesMax = 7 + 1;
  static constexpr std::size_t kFlagBytes = 1 + 1;
  static_assert(kHeaderBytesMax > 2 + 2 * kNumberBytesMax, "a version of one digit");
  static_assert(kEntryBytesMax > 3 * kDescriptorBytesMax + 3 * kNumberBytesMax + kFlagBytes);

 private:
  void append(std::uint64_t number, char behind);
  void append_descriptor(std::int32_t fd);

  char* buffer_;
  std::size_t capacity_;
  std::size_t size_ = 0;
  bool is_complete_ = true;
};

class ExecTableReader {
 public:
  // Null is an empty table.
  explicit ExecTableReader(const char* text);
  bool is_valid() const { return is_valid_; }
  bool is_empty() const { return next_ == nullptr || *next_ == '\0'; }
  const ExecTableHeader& header() const { return header_; }
  // The next entry; false at the end or at the first damaged one.
  bool next(ExecTableEntry* entry);

 private:
  const char* next_ = nullptr;
  bool is_valid_ = false;
  ExecTableHeader header_;
};

}  // namespace cairn
