// SPDX-License-Identifier: Apache-2.0
//
// The files of a replay: makes them, knows their content, and checks that they suit the trace.
//
// Each byte follows from the file's name and the byte's position, and the replay writes the same
// bytes, so that it can compare all reads at any time.
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
  // The most bytes of one call.
  static constexpr std::size_t kPartBytesMax = std::size_t{1} << 20;

  PlayedContent();
  // A number for the content of the file with this path below the directory; the other functions
  // take it.
  static std::uint64_t start_of(const std::string& path);
  // Valid as long as this. Requires: bytes <= kPartBytesMax.
  std::span<const char> at(std::uint64_t start, std::uint64_t offset, std::size_t bytes) const;
  void fill(std::uint64_t start, std::uint64_t offset, std::span<char> target) const;
  // Returns: the first byte of `found` that is not what it should be; its size when there is none.
  std::size_t mismatch(std::uint64_t start, std::uint64_t offset,
                       std::span<const char> found) const;

 private:
  // No multiple of any block, so that a comparison notices exchanged or moved blocks.
  static constexpr std::size_t kPeriod = kPartBytesMax + 3 * 4096;

  std::vector<char> bytes_;
};

class PlayedFiles {
 public:
  PlayedFiles(const PlayPlan& plan, std::string directory)
      : plan_(plan), directory_(std::move(directory)) {}

  std::string path_of(const PlayedFile& file) const;
  // Checks that all bytes that the trace reads exist, and that it overwrites no existing data,
  // unless that is allowed. Makes the directories of the files that the trace writes.
  void prepare(bool may_overwrite) const;

  struct Made {
    std::uint64_t files = 0;
    std::uint64_t bytes = 0;
  };
  // Makes the missing files that the trace reads, stores them and drops them from the page cache.
  // Fails for an existing file that it has not made itself.
  Made make() const;

 private:
  struct Existing {
    bool is_there = false;
    std::uint64_t bytes = 0;
  };
  Existing look_at(const PlayedFile& file) const;
  void make_directory_of(const PlayedFile& file) const;
  void require_room() const;
  // Returns: the number of bytes written.
  std::uint64_t make_file(const PlayedFile& file, const PlayedContent& content) const;

  const PlayPlan& plan_;
  const std::string directory_;
};

}  // namespace cairn::cli
