// SPDX-License-Identifier: Apache-2.0
// A node of one file whose store cannot make durable what it was given: for tests.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <string>

#include "service/durability/retirement.h"
#include "service/durability/testing/failing_syncs.h"
#include "service/durability/testing/logged_node.h"

namespace cairn::node::testing {

// A node whose store fails where the test says so.
class FailedSyncNode : public LoggedNode {
 protected:
  dev_t device() { return static_cast<dev_t>(raw(record().store())); }
  void acknowledge(const std::string& text) {
    write(0, text);
    ASSERT_EQ(make_durable(), 0);
    ASSERT_TRUE(record().is_in_log());
  }
  void store() { ASSERT_EQ(flusher_->flush_now(object_, false), 0); }
  int drain() { return files_->make_durable(); }
  enum class Fsync { kOwed, kForgotten };
  // Its last program has closed it. Forgotten: its descriptor could not be kept.
  void close_file(Fsync fsync) {
    record().writers.store(0);
    record().opens.store(0);
    const StoreFilePtr file = files_->find(object_);
    if (fsync == Fsync::kForgotten) file->sync_owed.store(false);
    ASSERT_TRUE(files_->drop_if_idle(file));
  }
  std::string on_store(std::size_t length) {
    std::string text(length, '?');
    const ssize_t got = ::pread(fd_.get(), text.data(), length, 0);
    text.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return text;
  }
  void lose_on_store() {
    struct stat status{};
    ASSERT_EQ(::fstat(fd_.get(), &status), 0);
    ASSERT_EQ(::ftruncate(fd_.get(), 0), 0);
    ASSERT_EQ(::ftruncate(fd_.get(), status.st_size), 0);
    const timespec times[] = {status.st_atim, status.st_mtim};
    ASSERT_EQ(::futimens(fd_.get(), times), 0);
  }
};

// Calls of a listener wait where the test says so.
class SlowListener final : public SyncListener {
 public:
  explicit SlowListener(SyncListener* next) : next_(next) {}
  Fate file_synced(const StoreFile& file, const SyncAnswer& answer) override {
    if (answer.error != 0) {
      has_failed = true;
      ::usleep(100'000);
    }
    return next_->file_synced(file, answer);
  }
  void store_sync_failed(StoreId store, int error) override {
    next_->store_sync_failed(store, error);
  }
  Fate store_again(const ClosedFile& file) override { return next_->store_again(file); }

  std::atomic<bool> has_failed{false};

 private:
  SyncListener* const next_;
};

}  // namespace cairn::node::testing
