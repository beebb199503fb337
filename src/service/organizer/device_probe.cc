// SPDX-License-Identifier: Apache-2.0
#include "service/organizer/device_probe.h"

#include <errno.h>
#include <liburing.h>

#include <array>
#include <atomic>
#include <utility>

#include "base/ids.h"

namespace cairn {

// The tier's first page.
struct DeviceProbe::Question {
  io_uring ring{};
  alignas(kPageBytes) std::array<std::byte, kPageBytes> page;
  Question* abandoned_before = nullptr;

  // 0 or -errno, and then there is none.
  static int ask(const Tier& tier, std::unique_ptr<Question>* asked) {
    const Tier::DevicePlace at = tier.on_device(TierExtent{0, kPageBytes});
    if (at.descriptor < 0) return -EBADF;
    auto question = std::make_unique<Question>();
    if (const int error = io_uring_queue_init(1, &question->ring, 0); error < 0) return error;
    io_uring_sqe* entry = io_uring_get_sqe(&question->ring);
    io_uring_prep_read(entry, at.descriptor, question->page.data(), kPageBytes, at.offset);
    if (io_uring_submit(&question->ring) == 1) {
      *asked = std::move(question);
      return 0;
    }
    io_uring_queue_exit(&question->ring);
    return -EAGAIN;
  }
};

DeviceProbe::DeviceProbe(const Tier& tier) : tier_(tier) {}

DeviceProbe::~DeviceProbe() {
  static std::atomic<Question*> abandoned{nullptr};
  if (question_ == nullptr) return;
  Question* question = question_.release();
  question->abandoned_before = abandoned.exchange(question);
}

bool DeviceProbe::has_answered() {
  if (question_ == nullptr) {
    const int error = Question::ask(tier_, &question_);
    if (error == -ENOSYS || error == -EPERM) return true;
  }
  io_uring_cqe* completion = nullptr;
  if (question_ == nullptr || io_uring_peek_cqe(&question_->ring, &completion) != 0) return false;
  io_uring_queue_exit(&question_->ring);
  question_.reset();
  return true;
}

}  // namespace cairn
