// SPDX-License-Identifier: Apache-2.0
// The backing file as the service stores through it: each range of bytes is recorded once the
// kernel has taken it, and before its blocks turn clean.
//
// Thread safety: any thread. Ownership: borrows both.
#pragma once

#include "memory/backing/posix_backing.h"
#include "service/write_back/stored_ranges.h"

namespace cairn::node {

class StoreBacking final : public Backing {
 public:
  StoreBacking(PosixBacking& file, RecordedRanges& stored)
      : Backing(file.descriptor()), file_(file), stored_(stored) {}

  bool is_writable() const override { return file_.is_writable(); }
  ssize_t read(std::uint64_t offset, void* buffer, std::size_t length) override {
    return file_.read(offset, buffer, length);
  }
  ssize_t read_once(std::uint64_t offset, void* buffer, std::size_t length) override {
    return file_.read_once(offset, buffer, length);
  }
  ssize_t read_parts(std::uint64_t offset, std::span<iovec> parts) override {
    return file_.read_parts(offset, parts);
  }
  ssize_t write(std::uint64_t offset, const void* buffer, std::size_t length) override {
    return recorded(offset, file_.write(offset, buffer, length));
  }
  ssize_t write_once(std::uint64_t offset, std::span<const iovec> parts) override {
    return recorded(offset, file_.write_once(offset, parts));
  }
  ssize_t append(const void* buffer, std::size_t length, std::uint64_t* offset) override {
    const ssize_t put = file_.append(buffer, length, offset);
    return recorded(*offset, put);
  }
  int status(StoreStatus* status) override { return file_.status(status); }
  int truncate(std::uint64_t size) override { return file_.truncate(size); }
  int allocate(int mode, std::uint64_t offset, std::uint64_t length) override {
    return file_.allocate(mode, offset, length);
  }
  int set_mtime(std::int64_t mtime_ns) override { return file_.set_mtime(mtime_ns); }
  int sync(SyncDepth depth) override { return file_.sync(depth); }

 private:
  ssize_t recorded(std::uint64_t offset, ssize_t put) {
    if (put > 0) stored_.add(offset, offset + static_cast<std::uint64_t>(put));
    return put;
  }

  PosixBacking& file_;
  RecordedRanges& stored_;
};

}  // namespace cairn::node
