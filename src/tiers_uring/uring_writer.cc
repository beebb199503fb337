// SPDX-License-Identifier: Apache-2.0
#include "tiers_uring/uring_writer.h"

#include <errno.h>
#include <liburing.h>

#include <algorithm>

namespace cairn {

struct UringWriter::Ring {
  io_uring ring{};
  bool ready = false;

  Ring() { ready = io_uring_queue_init(kDepth, &ring, IORING_SETUP_CLAMP) == 0; }
  ~Ring() {
    if (ready) io_uring_queue_exit(&ring);
  }
};

UringWriter::UringWriter() : ring_(std::make_unique<Ring>()) {
  if (!ring_->ready) ring_.reset();
}

UringWriter::~UringWriter() = default;

void UringWriter::write_all(std::span<BatchWrite> writes) {
  if (!has_ring()) return plain_.write_all(writes);
  while (!writes.empty()) {
    const std::size_t count = std::min<std::size_t>(writes.size(), kDepth);
    write_some(writes.first(count));
    writes = writes.subspan(count);
  }
}

void UringWriter::write_some(std::span<BatchWrite> writes) {
  io_uring* ring = &ring_->ring;
  unsigned queued = 0;
  for (BatchWrite& write : writes) {
    write.result = -EAGAIN;
    io_uring_sqe* entry = io_uring_get_sqe(ring);
    if (entry == nullptr) break;
    io_uring_prep_writev(entry, write.tier->fd(), write.parts.data(),
                         static_cast<unsigned>(write.parts.size()), write.offset);
    io_uring_sqe_set_data(entry, &write);
    ++queued;
  }
  const int submitted = io_uring_submit_and_wait(ring, queued);
  unsigned done = 0;
  // What the kernel accepted must be waited for: it reads the caller's memory until then.
  while (submitted > 0 && done < static_cast<unsigned>(submitted)) {
    io_uring_cqe* completion = nullptr;
    const int error = io_uring_wait_cqe(ring, &completion);
    if (error == -EINTR) continue;
    if (error < 0) break;
    auto* write = static_cast<BatchWrite*>(io_uring_cqe_get_data(completion));
    write->result = completion->res < 0 ? completion->res : 0;
    // A short direct write is rare; the plain writer then does the whole again, which is the same
    // bytes.
    if (completion->res >= 0 && static_cast<std::size_t>(completion->res) != write->length)
      write->result = -EAGAIN;
    io_uring_cqe_seen(ring, completion);
    ++done;
  }
  // Entries that the kernel did not take would go out with the next batch and read memory that is
  // another's by then.
  if (submitted < 0 || static_cast<unsigned>(submitted) < queued) ring_.reset();
  for (BatchWrite& write : writes) {
    if (write.result == -EAGAIN || write.result == -EINTR) {
      plain_.write_all(std::span(&write, 1));
    }
  }
}

}  // namespace cairn
