// SPDX-License-Identifier: Apache-2.0
// Another backing that fails, or does less than it was told to, at the calls that a test names
// (base/testing/fault_script.h), and whose power can be cut.
//
// Thread safety: any thread. Ownership: borrows the other backing.
#pragma once

#include <optional>

#include "base/testing/fault_script.h"
#include "base/testing/unflushed_writes.h"
#include "memory/backing/backing.h"

namespace cairn::testing {

enum class BackingCall : std::uint8_t {
  kRead,
  kWrite,
  kAppend,
  kStatus,
  kTruncate,
  kAllocate,
  kSetTime,
  kSync,
};

class FaultyBacking final : public Backing {
 public:
  explicit FaultyBacking(Backing& other) : Backing(other.descriptor()), other_(other) {}

  // The call number `first` of the kind, and `times` - 1 more, end with -`error` and do nothing.
  void fail(BackingCall call, int error, unsigned first = 1, unsigned times = UINT_MAX) {
    script_.fail(kind_of(call), error, {first, times});
  }
  // They read or write at most so many bytes.
  void shorten(BackingCall call, std::size_t bytes_max, unsigned first = 1,
               unsigned times = UINT_MAX) {
    script_.shorten(kind_of(call), bytes_max, {first, times});
  }
  // They write so many bytes, and end with -`error`.
  void tear(BackingCall call, std::size_t bytes, int error, unsigned first = 1,
            unsigned times = UINT_MAX) {
    script_.tear(kind_of(call), bytes, error, {first, times});
  }
  void delay(BackingCall call, int delay_ms) { script_.delay(kind_of(call), delay_ms); }
  // They end after heal() only.
  void hang(BackingCall call, unsigned first = 1, unsigned times = UINT_MAX) {
    script_.hang(kind_of(call), {first, times});
  }
  void await_hanging(unsigned count) { script_.await_hanging(count); }
  // Forgets all plans; the counts go on.
  void heal() { script_.heal(); }
  unsigned count(BackingCall call) const { return script_.count(kind_of(call)); }

  // From now on a write is durable after the next sync() that ends with 0, and only then for sure.
  void begin_forgetting();
  // The power is cut: what was not durable vanishes, in any part and any order. Requires:
  // begin_forgetting(), and nobody uses it. A changed size is durable at once.
  void cut_power(RandomSource& random);

  bool is_writable() const override { return other_.is_writable(); }
  ssize_t read(std::uint64_t offset, void* buffer, std::size_t length) override;
  ssize_t read_once(std::uint64_t offset, void* buffer, std::size_t length) override;
  ssize_t read_parts(std::uint64_t offset, std::span<iovec> parts) override;
  ssize_t write(std::uint64_t offset, const void* buffer, std::size_t length) override;
  ssize_t write_once(std::uint64_t offset, std::span<const iovec> parts) override;
  ssize_t append(const void* buffer, std::size_t length, std::uint64_t* offset) override;
  int status(StoreStatus* status) override;
  int truncate(std::uint64_t size) override;
  int truncate_as_called(std::uint64_t size) override;
  int allocate(int mode, std::uint64_t offset, std::uint64_t length) override;
  int set_mtime(std::int64_t mtime_ns) override;
  int sync(SyncDepth depth) override;

 private:
  static unsigned kind_of(BackingCall call) { return static_cast<unsigned>(call); }
  FaultScript::Fate next(BackingCall call) { return script_.next(kind_of(call)); }
  template <typename Call>
  int unless_failed(BackingCall call, Call&& other);
  ssize_t noted(std::uint64_t offset, std::span<const iovec> parts, ssize_t put);
  int cut_to(std::uint64_t size, int error);
  std::vector<std::byte> content();

  struct Forgetting {
    std::vector<std::byte> durable;
    std::vector<UnflushedWrite> writes;
  };

  Backing& other_;
  FaultScript script_;
  std::mutex mutex_;
  std::optional<Forgetting> forgetting_;
};

}  // namespace cairn::testing
