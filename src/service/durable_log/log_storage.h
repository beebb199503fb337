// SPDX-License-Identifier: Apache-2.0
// The files of a durable log, so that tests can cut their power: a folder with files of fixed names
// that are written at places and flushed.
//
// What a flush that returned 0 covers survives a power cut. Anything else may survive, or not, or
// in part, in any order. A new or renamed name survives once sync_folder() has returned 0.
//
// Thread safety: files may be written, read and flushed by several threads at the same time; a
// folder is used by one thread at a time. Errors: -errno.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace cairn::durable {

class LogFile {
 public:
  virtual ~LogFile() = default;
  LogFile() = default;
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  // Bytes of the file, or -errno.
  virtual std::int64_t size() = 0;
  // Reads until `out` is full or the file ends. Returns: bytes read, or -errno.
  virtual std::int64_t read(std::span<std::byte> out, std::uint64_t offset) = 0;
  // A hint: these bytes will be read soon.
  virtual void read_ahead(std::uint64_t offset, std::uint64_t bytes) {
    (void)offset;
    (void)bytes;
  }
  // A hint: nothing of it will be read again.
  virtual void let_go() {}
  // Writes all of `bytes`. Returns: 0 or -errno.
  virtual int write(std::span<const std::byte> bytes, std::uint64_t offset) = 0;
  // Returns 0 once everything written before the call is durable; else -errno, and nothing is
  // known of what was written since the last flush that succeeded.
  virtual int flush() = 0;
  // Refuses the file to everybody else for as long as it is open. Returns: 0, -EWOULDBLOCK, -errno.
  virtual int lock() = 0;
};

enum class OpenHow : std::uint8_t { kRead, kWrite, kCreate };

class LogStorage {
 public:
  virtual ~LogStorage() = default;
  LogStorage() = default;
  LogStorage(const LogStorage&) = delete;
  LogStorage& operator=(const LogStorage&) = delete;

  // For messages.
  virtual std::string where() const = 0;
  virtual Result<std::vector<std::string>> names() = 0;
  // Errors: kNotFound. kCreate: a new file, empty; one of that name is replaced.
  virtual Result<std::unique_ptr<LogFile>> open(const std::string& name, OpenHow how) = 0;
  virtual int rename(const std::string& from, const std::string& to) = 0;
  virtual int remove(const std::string& name) = 0;
  virtual int sync_folder() = 0;
};

}  // namespace cairn::durable
