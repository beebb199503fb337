// SPDX-License-Identifier: Apache-2.0
// A table of inherited descriptors that is too long for an environment variable (a string of it has
// 128 KiB at most, and all of them together count against the limit of exec): it is in a sealed
// memory file that the next program inherits, and CAIRN_FDS is "@<descriptor>".
//
// Thread safety: values. No allocation: made in a vfork child, too.
#pragma once

#include <cstddef>

namespace cairn {

// Longer texts go to a file.
inline constexpr std::size_t kExecTableInlineMax = 32 * 1024;
inline constexpr std::size_t kExecTableReferenceBytes = 16;

// Puts `text` into a file, close-on-exec. Returns its descriptor, or -errno; `reference` gets the
// variable's value.
int write_exec_table_file(const char* text, std::size_t length, char* reference);

// The text behind a value of the variable. Closes the file's descriptor at once.
class ExecTableText {
 public:
  // `value` may be null.
  explicit ExecTableText(const char* value);
  ~ExecTableText();
  ExecTableText(const ExecTableText&) = delete;
  ExecTableText& operator=(const ExecTableText&) = delete;

  // Null when there is none, or none that may be trusted to be a text.
  const char* text() const { return text_; }
  bool is_long() const { return size_ != 0; }

 private:
  const char* text_ = nullptr;
  void* mapping_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace cairn
