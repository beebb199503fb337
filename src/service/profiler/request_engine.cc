// SPDX-License-Identifier: Apache-2.0
#include "service/profiler/request_engine.h"

#include <liburing.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <numeric>
#include <system_error>
#include <thread>

#include "base/check.h"
#include "base/clock.h"

namespace cairn::profiler {
namespace {

// The result of a request as an error number; a short transfer is the device's failure to do it.
int error_of(int64_t result, uint32_t wanted) {
  if (result < 0) return static_cast<int>(-result);
  return static_cast<uint64_t>(result) == wanted ? 0 : EIO;
}

bool may_start(const RequestRun& run, int64_t start_ns, uint64_t index) {
  if (run.cancelled != nullptr && run.cancelled->load(std::memory_order_relaxed)) return false;
  return index < run.requests_max && monotonic_ns() - start_ns < run.budget_ns;
}

class UringEngine final : public RequestEngine {
 public:
  static constexpr unsigned kEntries = 64;

  UringEngine() { ready_ = io_uring_queue_init(kEntries, &ring_, 0) == 0; }
  ~UringEngine() override {
    if (ready_) io_uring_queue_exit(&ring_);
  }
  UringEngine(const UringEngine&) = delete;
  UringEngine& operator=(const UringEngine&) = delete;

  bool is_ready() const { return ready_; }

  RequestTimes run(const RequestRun& run) override {
    CAIRN_CHECK(run.pattern.depth >= 1 && run.pattern.depth <= kEntries);
    RequestTimes times;
    if (!ready_) {
      times.error_number = ENOSYS;
      return times;
    }
    uint64_t started = 0;
    unsigned in_flight = 0;
    const int64_t start_ns = monotonic_ns();
    for (unsigned slot = 0; slot < run.pattern.depth; ++slot) {
      if (!may_start(run, start_ns, started)) break;
      start(run, slot, started++);
      ++in_flight;
    }
    bool broken = false;
    while (in_flight > 0) {
      io_uring_cqe* completion = nullptr;
      const int error = broken ? io_uring_wait_cqe(&ring_, &completion)
                               : std::min(io_uring_submit_and_wait(&ring_, 1), 0);
      if (error != 0 && error != -EINTR && error != -EAGAIN && error != -EBUSY && !broken) {
        // What the kernel has not taken will never be completed; what it has must be waited for,
        // because it uses the caller's memory until then.
        broken = true;
        times.error_number = -error;
        in_flight -= std::min(io_uring_sq_ready(&ring_), in_flight);
      }
      while (io_uring_peek_cqe(&ring_, &completion) == 0) {
        const int failure = error_of(completion->res, run.pattern.request_bytes);
        const auto slot = static_cast<unsigned>(io_uring_cqe_get_data64(completion));
        CAIRN_CHECK(slot < run.pattern.depth && in_flight > 0);
        io_uring_cqe_seen(&ring_, completion);
        --in_flight;
        if (failure == 0) times.completed_ns.push_back(monotonic_ns() - start_ns);
        if (times.error_number == 0) times.error_number = failure;
        if (times.error_number != 0 || !may_start(run, start_ns, started)) continue;
        start(run, slot, started++);
        ++in_flight;
      }
    }
    if (broken) renew();
    return times;
  }

 private:
  void start(const RequestRun& run, unsigned slot, uint64_t index) {
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    CAIRN_CHECK(entry != nullptr);  // there are more entries than requests in flight
    std::byte* memory = run.memory + size_t{slot} * run.pattern.request_bytes;
    const uint64_t offset = request_offset(run.pattern, index);
    if (run.pattern.direction == Direction::kRead) {
      io_uring_prep_read(entry, run.descriptor, memory, run.pattern.request_bytes, offset);
    } else {
      io_uring_prep_write(entry, run.descriptor, memory, run.pattern.request_bytes, offset);
    }
    io_uring_sqe_set_data64(entry, slot);
  }

  // Entries that were left in the ring would go out with the next run and use memory that is
  // another's by then.
  void renew() {
    io_uring_queue_exit(&ring_);
    ready_ = io_uring_queue_init(kEntries, &ring_, 0) == 0;
  }

  io_uring ring_{};
  bool ready_ = false;
};

class ThreadEngine final : public RequestEngine {
 public:
  RequestTimes run(const RequestRun& run) override {
    CAIRN_CHECK(run.pattern.depth >= 1 && run.memory != nullptr);
    times_ = {};
    next_ = 0;
    failed_ = false;
    const int64_t start_ns = monotonic_ns();
    std::vector<std::thread> threads;
    try {
      for (unsigned slot = 1; slot < run.pattern.depth; ++slot)
        threads.emplace_back([this, &run, slot, start_ns] { work(run, slot, start_ns); });
      work(run, 0, start_ns);
    } catch (const std::system_error& error) {
      // Fewer requests at once would tell of another pattern.
      fail(error.code().value());
    }
    for (std::thread& thread : threads) thread.join();
    std::sort(times_.completed_ns.begin(), times_.completed_ns.end());
    return std::move(times_);
  }

 private:
  void work(const RequestRun& run, unsigned slot, int64_t start_ns) {
    std::byte* memory = run.memory + size_t{slot} * run.pattern.request_bytes;
    std::vector<int64_t> completed;
    int error = 0;
    while (error == 0 && !failed_.load(std::memory_order_relaxed)) {
      const uint64_t index = next_.fetch_add(1, std::memory_order_relaxed);
      if (!may_start(run, start_ns, index)) break;
      error = error_of(transfer(run, memory, index), run.pattern.request_bytes);
      if (error == 0) completed.push_back(monotonic_ns() - start_ns);
    }
    if (error != 0) fail(error);
    const std::lock_guard lock(mutex_);
    times_.completed_ns.insert(times_.completed_ns.end(), completed.begin(), completed.end());
  }

  // Nobody begins another request.
  void fail(int error) {
    failed_ = true;
    const std::lock_guard lock(mutex_);
    if (times_.error_number == 0) times_.error_number = error;
  }

  static int64_t transfer(const RequestRun& run, std::byte* memory, uint64_t index) {
    const auto offset = static_cast<off_t>(request_offset(run.pattern, index));
    while (true) {
      const ssize_t count =
          run.pattern.direction == Direction::kRead
              ? ::pread(run.descriptor, memory, run.pattern.request_bytes, offset)
              : ::pwrite(run.descriptor, memory, run.pattern.request_bytes, offset);
      if (count >= 0) return count;
      if (errno != EINTR) return -errno;
    }
  }

  std::atomic<uint64_t> next_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  RequestTimes times_;  // by mutex_ while threads run
};

}  // namespace

std::unique_ptr<RequestEngine> make_uring_engine() {
  auto engine = std::make_unique<UringEngine>();
  if (!engine->is_ready()) return nullptr;
  return engine;
}

std::unique_ptr<RequestEngine> make_thread_engine() { return std::make_unique<ThreadEngine>(); }

uint64_t request_offset(const RequestPattern& pattern, uint64_t index) {
  CAIRN_CHECK(pattern.request_bytes != 0);
  const uint64_t places = std::max<uint64_t>(pattern.region_bytes / pattern.request_bytes, 1);
  if (pattern.sequential) return index % places * pattern.request_bytes;
  // Steps of about the golden section of the region, with no factor in common with it: every place
  // once before any comes twice, neighbours in time far apart in space.
  uint64_t stride = std::max<uint64_t>(
      static_cast<uint64_t>(static_cast<double>(places) * 0.6180339887498949), 1);
  while (std::gcd(stride, places) != 1) ++stride;
  return index % places * stride % places * pattern.request_bytes;
}

}  // namespace cairn::profiler
