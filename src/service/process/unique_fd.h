// SPDX-License-Identifier: Apache-2.0
// A file descriptor with one owner, or with several.
//
// Thread safety: none; a shared one is closed by the last who lets go of it, in whichever thread.
// Ownership: closes what it holds.
#pragma once

#include <unistd.h>

#include <memory>
#include <utility>

namespace cairn::node {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

using SharedFd = std::shared_ptr<const UniqueFd>;

}  // namespace cairn::node
