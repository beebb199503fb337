// SPDX-License-Identifier: Apache-2.0
//
// An open file of which only the system calls are timed: producing and comparing contents is not
// I/O.
//
// A file's bytes are those of worker::Content from a place on that belongs to the file, so that
// files swapped for each other, shifted ranges and stale generations are all noticed.
//
// Thread safety: one thread. Ownership: owns its descriptor. Errors: any failure, short transfer or
// wrong byte ends the worker.
#pragma once

#include "worker.h"

namespace worker {

// Where the content of file number `file` begins. The step is odd and not near a multiple of the
// period's divisors, so that thousands of files start at different bytes.
inline uint64_t content_start(uint64_t file) { return file * 12289; }

class TimedFile {
 public:
  // elapsed_ns grows by the time of every call, those that open and close included.
  TimedFile(const std::string& path, int flags, int64_t* elapsed_ns)
      : path_(path), elapsed_ns_(elapsed_ns) {
    timed([&] { descriptor_ = open(path.c_str(), flags, 0644); });
    require(descriptor_ >= 0, "open " + path);
  }
  TimedFile(const TimedFile&) = delete;
  TimedFile& operator=(const TimedFile&) = delete;
  ~TimedFile() {
    int result = 0;
    timed([&] { result = close(descriptor_); });
    require(result == 0, "close " + path_);
  }

  // Writes [offset, offset + length) with the bytes of `content` from content position `start +
  // offset` on, in requests of at most `request` bytes. The bytes come from a page-aligned buffer,
  // whatever the offset is.
  void write(const Content& content, uint64_t start, uint64_t offset, uint64_t length,
             uint64_t request) {
    Buffer& buffer = shared_buffer();
    for (uint64_t end = offset + length; offset < end;) {
      size_t piece = std::min(request, end - offset);
      memcpy(buffer.data(), content.at(start + offset), piece);
      ssize_t done = 0;
      timed([&] { done = pwrite(descriptor_, buffer.data(), piece, static_cast<off_t>(offset)); });
      require(done >= 0, "pwrite " + path_);
      if (static_cast<size_t>(done) != piece) fail("short write: " + path_);
      offset += piece;
    }
  }

  // Reads the range and ends the worker if it is not what write() would have written.
  void read(const Content& content, uint64_t start, uint64_t offset, uint64_t length,
            uint64_t request) {
    Buffer& buffer = shared_buffer();
    for (uint64_t end = offset + length; offset < end;) {
      size_t piece = std::min(request, end - offset);
      ssize_t done = 0;
      timed([&] { done = pread(descriptor_, buffer.data(), piece, static_cast<off_t>(offset)); });
      require(done >= 0, "pread " + path_);
      if (static_cast<size_t>(done) != piece) fail("short read: " + path_);
      if (memcmp(buffer.data(), content.at(start + offset), piece) != 0) {
        fail("wrong content: " + path_ + " at " + std::to_string(offset));
      }
      offset += piece;
    }
  }

  void sync() {
    int result = 0;
    timed([&] { result = fsync(descriptor_); });
    require(result == 0, "fsync " + path_);
  }

  void require_size(uint64_t bytes) const {
    struct stat status;
    require(fstat(descriptor_, &status) == 0, "fstat " + path_);
    if (static_cast<uint64_t>(status.st_size) != bytes) fail("wrong size: " + path_);
  }

 private:
  template <typename Call>
  void timed(Call call) {
    int64_t begin = now_ns();
    call();
    *elapsed_ns_ += now_ns() - begin;
  }

  // One for the process: its pages are touched before the first timed call uses them.
  static Buffer& shared_buffer() {
    static Buffer buffer(Content::kLargestRequest);
    return buffer;
  }

  std::string path_;
  int64_t* elapsed_ns_;
  int descriptor_ = -1;
};

}  // namespace worker
