// SPDX-License-Identifier: Apache-2.0
// A node of one file, with all that makes it durable: for tests.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <optional>
#include <string>

#include "base/testing/temporary_folder.h"
#include "frontends/protocol/protocol.h"
#include "memory/backing/posix_backing.h"
#include "memory/buffer/object_io.h"
#include "memory/buffer/testing/accepting_service.h"
#include "memory/tiers/testing/test_memory.h"
#include "service/durability/dirty_logging.h"
#include "service/durable_log/testing/power_cut_storage.h"

#include "service/durability/durability_worker.h"

namespace cairn::node::testing {

using namespace cairn::testing;

// A file of level node whose log is on a disk that loses what no flush has covered.
class LoggedNode : public ::testing::Test {
 protected:
  void SetUp() override {
    memory_ = testing::make_memory(testing::memory_only(64 * kBlockBytes));
    actor_ = testing::make_actor(memory_);
    // The log takes no file without a name.
    fd_ = UniqueFd(::open((folder_.path() + "/file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0640));
    StoreStatus status;
    ASSERT_EQ(store_status(fd_.get(), &status), 0);
    object_ = testing::make_object(actor_, status.key);
    record().durability.store(Durability::kNode);
    record().writers.store(1);
    files_.emplace(memory_);
    ASSERT_TRUE(files_->insert(object_, UniqueFd(::dup(fd_.get())), FileRoom(), 1));
    record().set(kObjectHandedOver);
    service_.memory = &memory_;
    backing_.emplace(fd_.get(), O_RDWR);
    const Owner self = memory_.owners().current(ClientSlot::kOfService);
    flusher_.emplace(memory_, *files_, self, FlushOptions{}, [](const std::string&) {});
    open_log();
    logged_.emplace(memory_, self, *log_);
    names_.emplace(memory_, *logged_, *log_);
    logged_->use_names(*names_);
    flusher_->use_log(*logged_);
    storing_.start();
    retirement_.emplace(RetirementParts{memory_, *logged_, *names_, *files_, *flusher_, counts_});
    worker_.emplace(DurabilityParts{memory_, *logged_, *names_, *files_, *flusher_, storing_,
                                    *retirement_, counts_});
    worker_->start("cairn-durable");
  }
  void TearDown() override {
    if (worker_) worker_->stop();
    storing_.stop();
    actor_.drop_leases();
  }

  Object& record() { return memory_.objects().at(object_); }

  void open_log() {
    durable::LogOptions options;
    options.capacity_bytes = 8 << 20;
    options.segment_bytes = 1 << 20;
    auto log = durable::DurableLog::open(disk_.storage(), options);
    ASSERT_TRUE(log.is_ok()) << log.status().message();
    log_ = std::move(log.value());
  }

  void write(std::uint64_t offset, const std::string& text) {
    const ObjectAccess access(actor_, object_, *backing_, service_);
    ASSERT_EQ(write_object(access, offset, text.data(), text.size()),
              static_cast<ssize_t>(text.size()));
  }

  // What the client gets: 0 or -errno.
  int make_durable() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    const UniqueFd mine(ends[0]);
    worker_->submit(Asker(std::make_shared<const UniqueFd>(UniqueFd(ends[1]))), object_);
    protocol::Flushed answer;
    EXPECT_EQ(::recv(mine.get(), &answer, sizeof answer, 0), static_cast<ssize_t>(sizeof answer));
    return -answer.error;
  }

  // Nothing but the disk is left.
  bool survives(const std::string& text) {
    if (worker_) {
      disk_.cut_after(0);
      worker_->stop();
      worker_.reset();
      RandomSource random(7);
      disk_.restore_power(random);
    }
    for (const auto& [name, bytes] : disk_.contents()) {
      const auto* begin = reinterpret_cast<const std::byte*>(text.data());
      if (std::search(bytes.begin(), bytes.end(), begin, begin + text.size()) != bytes.end())
        return true;
    }
    return false;
  }

  const cairn::testing::TemporaryFolder folder_{"durability"};
  durable::PowerCutDisk disk_;
  std::unique_ptr<durable::DurableLog> log_;
  NodeMemory memory_;
  Actor actor_;
  UniqueFd fd_;
  ObjectIndex object_{};
  testing::AcceptingService service_;
  std::optional<PosixBacking> backing_;
  std::optional<StoreFiles> files_;
  std::optional<LoggedFiles> logged_;
  std::optional<LoggedNames> names_;
  std::optional<Flusher> flusher_;
  DurabilityCounts counts_;
  RequestWorker storing_;
  std::optional<Retirement> retirement_;
  std::optional<DurabilityWorker> worker_;
};

}  // namespace cairn::node::testing
