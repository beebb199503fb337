// SPDX-License-Identifier: Apache-2.0
// A text file by lines, decompressed on the way when it is compressed with zstd.
//
// Thread safety: none. Ownership: the open file and two buffers of 128 KiB.
// Errors: status(), with the file's name; that of reading, or kInvalid for damaged or incomplete
// compressed data and for a line of more than kTextLineBytesMax.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "service/trace/compression.h"

namespace cairn {

inline constexpr std::size_t kTextLineBytesMax = 64 * 1024;

// Closes a stream of stdio.
struct CloseStdioFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using StdioFile = std::unique_ptr<std::FILE, CloseStdioFile>;

class TextInput {
 public:
  static Result<std::unique_ptr<TextInput>> open(const std::string& path);

  // The next bytes, which stay; fewer than `bytes` only at the end of the file or after an error.
  // Valid until the next call. Requires: bytes <= kTextLineBytesMax.
  std::string_view peek(std::size_t bytes);
  // The next line without its end, '\n' or "\r\n". Valid until the next call. Returns: false at the
  // end and after an error.
  bool next_line(std::string_view* line);

  const Status& status() const { return status_; }
  const std::string& path() const { return path_; }
  // "PATH:LINE: " of the line that was read last.
  std::string place() const { return path_ + ":" + std::to_string(line_number_) + ": "; }

 private:
  TextInput(std::string path, StdioFile file);
  void read_more();
  std::size_t read_file(std::span<std::uint8_t> target);
  std::size_t read_compressed(std::span<std::uint8_t> target);
  std::string_view unread() const {
    return {reinterpret_cast<const char*>(buffer_.data()) + begin_, end_ - begin_};
  }

  const std::string path_;
  StdioFile file_;
  Status status_;
  std::uint64_t line_number_ = 0;
  bool is_at_end_ = false;
  std::vector<std::uint8_t> buffer_;  // of text; what is unread stands at [begin_, end_)
  std::size_t begin_ = 0;
  std::size_t end_ = 0;

  std::unique_ptr<StreamDecompressor> decompressor_;  // null for plain text
  std::vector<std::uint8_t> compressed_;
  std::span<const std::uint8_t> compressed_unread_;
  bool is_output_pending_ = false;
};

}  // namespace cairn
