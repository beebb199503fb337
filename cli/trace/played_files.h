// SPDX-License-Identifier: Apache-2.0
//
// The files that a trace is played on: what is in those that the replay makes, whether they are
// what the trace needs, and making them.
//
// Every byte of them follows from the file's name and its position, and the replay writes the same
// bytes, so that whatever is read at any time can be compared.
//
// Thread safety: one thread. Ownership: borrows the plan. Errors: Failure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cli/trace/played_trace.h"

namespace cairn::cli {

class PlayedContent {
 public:
  // At most so many bytes are had at once.
  static constexpr std::size_t kPartBytesMax = std::size_t{1} << 20;

  PlayedContent();
  // What the file with this path below the directory begins with, as a number for the others.
  static std::uint64_t start_of(const std::string& path);
  // Valid as long as this. Requires: bytes <= kPartBytesMax.
  std::span<const char> at(std::uint64_t start, std::uint64_t offset, std::size_t bytes) const;
  void fill(std::uint64_t start, std::uint64_t offset, std::span<char> target) const;
  // Returns: the first byte of `found` that is not what it should be; its size when there is none.
  std::size_t mismatch(std::uint64_t start, std::uint64_t offset,
                       std::span<const char> found) const;

 private:
  // No multiple of any block, so that blocks that were exchanged or moved are noticed.
  static constexpr std::size_t kPeriod = kPartBytesMax + 3 * 4096;

  std::vector<char> bytes_;
};

class PlayedFiles {
 public:
  PlayedFiles(const PlayPlan& plan, std::string directory)
      : plan_(plan), directory_(std::move(directory)) {}

  std::string path_of(const PlayedFile& file) const;
  // Everything that is read is there, and nothing is written over what is there already, unless it
  // may be. Makes the directories of files that are going to be written.
  void prepare(bool may_overwrite) const;

  struct Made {
    std::uint64_t files = 0;
    std::uint64_t bytes = 0;
  };
  // What is missing of the files that are read, stored and gone from the page cache. Fails for a
  // file that is there already and was not made by this.
  Made make() const;

 private:
  struct Existing {
    bool is_there = false;
    std::uint64_t bytes = 0;
  };
  Existing look_at(const PlayedFile& file) const;
  void make_directory_of(const PlayedFile& file) const;
  void require_room() const;
  // Returns: the bytes that were written.
  std::uint64_t make_file(const PlayedFile& file, const PlayedContent& content) const;

  const PlayPlan& plan_;
  const std::string directory_;
};

}  // namespace cairn::cli
