// SPDX-License-Identifier: Apache-2.0
// A disk in memory whose power can be cut: what no flush has covered then survives in any part and
// any order, down to torn sectors, and a name survives once its folder was flushed, or by chance.
//
// Thread safety: all functions. Ownership: storages share the disk.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/random_source.h"
#include "base/testing/fault_script.h"
#include "base/testing/unflushed_writes.h"
#include "service/durable_log/log_storage.h"

namespace cairn::durable {

class PowerCutDisk {
 public:
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  // The operation after `operations` more fails, and so do all that follow it: the power is off.
  void cut_after(std::uint64_t operations);
  bool is_off() const;
  std::uint64_t operations() const;
  // Writes and flushes do what it says.
  testing::FaultScript& script() { return script_; }
  static constexpr unsigned kWrite = 0;
  static constexpr unsigned kFlush = 1;
  // Every flush from now on fails with this errno; 0: none does.
  void fail_flushes(int error_number);

  // The power comes back, and what survived is there. Storages from before are dead.
  void restore_power(RandomSource& random);

  // A view of the folder, as a process has it. Requires: the disk outlives it.
  std::unique_ptr<LogStorage> storage();

  // All bytes of the files, as a process sees them, and a way to change them.
  std::map<std::string, std::vector<std::byte>> contents() const;
  void set_content(const std::string& name, std::vector<std::byte> bytes);

 private:
  friend class PowerCutFile;
  friend class PowerCutStorage;

  struct Content {
    std::vector<std::byte> now;
    std::vector<std::byte> durable;
    std::vector<testing::UnflushedWrite> unflushed;
    bool is_locked = false;
  };
  using ContentPointer = std::shared_ptr<Content>;
  // A name that changed: the file that it means since, or none.
  struct NameChange {
    std::string name;
    ContentPointer content;
  };

  // Requires: mutex_. 0, or -EIO when the power is off.
  int operate();
  static void survive(Content& content, RandomSource& random);

  mutable std::mutex mutex_;
  std::map<std::string, ContentPointer> names_;
  std::map<std::string, ContentPointer> durable_names_;
  std::vector<NameChange> unflushed_names_;
  std::uint64_t operations_ = 0;
  std::uint64_t cut_at_ = kNever;
  std::uint64_t power_ = 1;  // counts restorations
  int flush_error_ = 0;
  testing::FaultScript script_;
};

}  // namespace cairn::durable
