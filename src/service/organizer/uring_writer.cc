// SPDX-License-Identifier: Apache-2.0
#include "service/organizer/uring_writer.h"

#include <errno.h>
#include <liburing.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "base/check.h"
#include "base/clock.h"
#include "base/test_capacities.h"

namespace cairn {

namespace {

// So much longer a device is waited for when the patience is over: if this process was stopped
// meanwhile, the kernel's threads that work for it were as well.
constexpr std::chrono::seconds kPatienceMore{1};

// What has ended in the ring; null when nothing has in time.
io_uring_cqe* await_completion(io_uring* ring, std::chrono::nanoseconds patience) {
  constexpr timespec kNap{0, 1'000'000};
  const std::int64_t end_ns = monotonic_ns() + patience.count();
  io_uring_cqe* completion = nullptr;
  // In this order: time that this process did not have is no reason not to look.
  while (io_uring_peek_cqe(ring, &completion) != 0) {
    const std::int64_t left_ns = end_ns - monotonic_ns();
    if (left_ns <= 0) return nullptr;
    __kernel_timespec time{left_ns / kNanosPerSecond, left_ns % kNanosPerSecond};
    // Fails for a signal, or because nothing has ended; should it ever be for something else, the
    // kernel goes on all the same, and what it has done is found in the ring's memory.
    const int error = io_uring_wait_cqe_timeout(ring, &completion, &time);
    if (error < 0 && error != -EINTR && error != -ETIME) ::nanosleep(&kNap, nullptr);
  }
  return completion;
}

}  // namespace

struct UringWriter::Ring {
  io_uring ring{};
  bool ready = false;
  unsigned in_flight = 0;                    // with those that are queued only
  std::array<BatchWrite*, kDepth> writes{};  // those in flight, in no order
  std::array<BatchWrite*, kDepth> queued{};
  unsigned queued_count = 0;
  Ring* abandoned_before = nullptr;

  Ring() { ready = io_uring_queue_init(kDepth, &ring, IORING_SETUP_CLAMP) == 0; }
  ~Ring() {
    if (ready) io_uring_queue_exit(&ring);
  }
  void forget(const BatchWrite* write) {
    const auto end = writes.begin() + in_flight;
    const auto found = std::find(writes.begin(), end, write);
    CAIRN_CHECK(found != end);
    *found = writes[--in_flight];
  }
};

UringWriter::UringWriter()
    : UringWriter(std::chrono::milliseconds(
          capacity_of("tier_patience_ms", static_cast<std::uint32_t>(kPatience.count())))) {}

UringWriter::UringWriter(std::chrono::milliseconds patience)
    : patience_(patience), ring_(std::make_unique<Ring>()) {
  if (!ring_->ready) ring_.reset();
}

UringWriter::~UringWriter() = default;

void UringWriter::start(std::span<BatchWrite> writes) {
  for (BatchWrite& write : writes) {
    // To be done by wait(), one by one, if there is no ring or none any more.
    write.result = write.place.tier->hangs() ? -ETIMEDOUT : -EAGAIN;
    if (write.result == -ETIMEDOUT) continue;
    if (has_ring() && ring_->in_flight == kDepth) submit();
    if (has_ring() && ring_->in_flight == kDepth) reap_one();
    const Tier::DevicePlace at = write.place.tier->on_device(write.place.extent);
    const bool is_possible = has_ring() && at.descriptor >= 0;
    io_uring_sqe* entry = is_possible ? io_uring_get_sqe(&ring_->ring) : nullptr;
    if (entry == nullptr) continue;
    io_uring_prep_writev(entry, at.descriptor, write.parts.data(),
                         static_cast<unsigned>(write.parts.size()), at.offset);
    io_uring_sqe_set_data(entry, &write);
    write.place.tier->forget_sums(write.place.extent);
    write.result = BatchWrite::kInFlight;
    ring_->queued[ring_->queued_count++] = &write;
    ring_->writes[ring_->in_flight++] = &write;
  }
  if (has_ring()) submit();
  // While the devices are at work, and also of what they have done by now, where there was more
  // than the ring takes. The caller forgets the checksums of a bucket that it gives up, after a
  // failure or because the bytes have changed since.
  for (const BatchWrite& write : writes) {
    if (write.result == BatchWrite::kInFlight || write.result == 0)
      write.place.tier->note_sums(write.place.extent, write.parts);
  }
}

void UringWriter::submit() {
  Ring& ring = *ring_;
  const int submitted = ring.queued_count != 0 ? io_uring_submit(&ring.ring) : 0;
  const unsigned taken = submitted > 0 ? static_cast<unsigned>(submitted) : 0;
  const unsigned left = ring.queued_count - taken;
  for (unsigned at = taken; at < ring.queued_count; ++at) {
    ring.queued[at]->result = -EAGAIN;
    ring.forget(ring.queued[at]);
  }
  ring.queued_count = 0;
  if (left == 0) return;
  // Entries that the kernel did not take would go out with the next batch and read memory that is
  // another's by then. What it did take must be waited for: it reads the caller's memory.
  while (ring.in_flight > 0) reap_one();
  ring_.reset();
}

void UringWriter::reap_one() {
  io_uring_cqe* completion = await_completion(&ring_->ring, patience_);
  if (completion == nullptr) completion = await_completion(&ring_->ring, kPatienceMore);
  if (completion == nullptr) return abandon();
  auto* write = static_cast<BatchWrite*>(io_uring_cqe_get_data(completion));
  ring_->forget(write);
  write->result = completion->res < 0 ? completion->res : 0;
  (void)write->place.tier->note_result(TierOperation::kWrite, write->place.extent, write->result);
  // A short direct write is rare; the plain writer then does the whole again, which is the same
  // bytes.
  if (completion->res >= 0 &&
      static_cast<std::size_t>(completion->res) != write->place.extent.length)
    write->result = -EAGAIN;
  io_uring_cqe_seen(&ring_->ring, completion);
}

// Nobody looks at the ring again: what ends in it would be told of writes that are no more. A list
// keeps it, because the kernel may still write to it.
void UringWriter::abandon() {
  static std::atomic<Ring*> abandoned{nullptr};
  Ring& ring = *ring_.release();
  ring.abandoned_before = abandoned.exchange(&ring);
  while (ring.in_flight > 0) {
    BatchWrite* write = ring.writes[ring.in_flight - 1];
    write->result = write->place.tier->note_hang();
    ring.forget(write);
  }
  ring_ = std::make_unique<Ring>();
  if (!ring_->ready) ring_.reset();
}

void UringWriter::wait(std::span<BatchWrite> writes) {
  for (BatchWrite& write : writes) {
    while (write.result == BatchWrite::kInFlight) reap_one();
    if (write.result == -EAGAIN || write.result == -EINTR) plain_.write_all(std::span(&write, 1));
  }
}

}  // namespace cairn
