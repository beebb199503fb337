// SPDX-License-Identifier: Apache-2.0
// What the service's descriptors are for, by their numbers. The keeper shares the service's table
// of descriptors, so all of them stay open when a service dies; these labels tell the successor
// what each one is. Where there is none, the descriptor itself has to say (a backing file is known
// by its identity), or it is closed.
//
//   label of a number   service                    a death then leaves
//   none                opens the descriptor       an open one without a label
//   kind                note(), then uses it       one that the successor takes over
//   none                forget(), then closes it   an open one without a label
//
// Thread safety: any thread; a label is its descriptor's holder's to change. Ownership: the labels
// lie in kept memory; a KeptFd closes its descriptor.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <utility>

#include "service/keeping/kept_memory.h"
#include "service/process/unique_fd.h"

namespace cairn::node {

enum class KeptKind : std::uint32_t {
  kNone,
  kControlMemory,    // the control segment
  kDataMemory,       // the bytes of the RAM tier
  kPool,             // number: the tier
  kNodeLock,         // node.pid
  kLauncher,         // of a private node: closed at its other end when nobody wants the node
  kClientListener,   // client.sock
  kControlListener,  // control.sock
  kClient,           // a connection; number: its owner's bits, first: the process
  kLedger,           // a connection; number: the ledger, first: its holder
  kProcess,          // a pidfd; number: the process
  kControl,          // a connection of the command line; number: its session
};

struct KeptLabel {
  KeptKind kind = KeptKind::kNone;
  std::uint64_t number = 0;
  std::uint64_t first = 0;
};

class KeptDescriptors {
 public:
  // Higher numbers get no label.
  static constexpr std::size_t kNumbers = std::size_t{1} << 20;

  explicit KeptDescriptors(KeptMemory& memory)
      : memory_fd_(memory.fd()), labels_(memory.take<Cell>(kNumbers)) {}

  // The descriptor of the labels' own memory. No successor takes it or closes it.
  int memory_fd() const { return memory_fd_; }

  void note(int fd, const KeptLabel& label) {
    if (!has(fd)) return;
    Cell& cell = at(fd);
    cell.number.store(label.number, std::memory_order_relaxed);
    cell.first.store(label.first, std::memory_order_relaxed);
    cell.kind.store(label.kind, std::memory_order_release);
  }
  void forget(int fd) {
    if (!has(fd)) return;
    at(fd).is_asked.store(false, std::memory_order_relaxed);
    at(fd).kind.store(KeptKind::kNone, std::memory_order_release);
  }
  // A question was taken off a connection, labelled or not, and is not answered yet.
  void note_asked(int fd, bool is_asked) {
    if (has(fd)) at(fd).is_asked.store(is_asked, std::memory_order_release);
  }
  bool is_asked(int fd) const { return has(fd) && at(fd).is_asked.load(std::memory_order_acquire); }
  KeptLabel of(int fd) const {
    if (!has(fd)) return {};
    const Cell& cell = at(fd);
    return {cell.kind.load(std::memory_order_acquire), cell.number.load(std::memory_order_relaxed),
            cell.first.load(std::memory_order_relaxed)};
  }

  // For tests: what says of which kind the label is.
  const void* word_of(int fd) const { return has(fd) ? &at(fd).kind : nullptr; }

 private:
  struct Cell {
    std::atomic<KeptKind> kind;
    std::atomic<std::uint64_t> number;
    std::atomic<std::uint64_t> first;
    std::atomic<bool> is_asked;
  };
  bool has(int fd) const { return fd >= 0 && static_cast<std::size_t>(fd) < labels_.size(); }
  Cell& at(int fd) const { return labels_[static_cast<std::size_t>(fd)]; }

  int memory_fd_;
  std::span<Cell> labels_;
};

// A descriptor with its label: the label goes before the descriptor.
class KeptFd {
 public:
  KeptFd() = default;
  // Without a label: a service that nobody succeeds.
  explicit KeptFd(UniqueFd fd) : fd_(std::move(fd)) {}
  KeptFd(UniqueFd fd, KeptDescriptors& labels, const KeptLabel& label)
      : fd_(std::move(fd)), labels_(&labels) {
    labels_->note(fd_.get(), label);
  }
  KeptFd(KeptFd&& other) noexcept
      : fd_(std::move(other.fd_)), labels_(std::exchange(other.labels_, nullptr)) {}
  KeptFd& operator=(KeptFd&& other) noexcept {
    if (this == &other) return *this;
    reset();
    fd_ = std::move(other.fd_);
    labels_ = std::exchange(other.labels_, nullptr);
    return *this;
  }
  ~KeptFd() { reset(); }

  int get() const { return fd_.get(); }
  explicit operator bool() const { return static_cast<bool>(fd_); }
  void reset() {
    if (labels_ != nullptr && fd_) labels_->forget(fd_.get());
    fd_.reset();
  }

 private:
  UniqueFd fd_;
  KeptDescriptors* labels_ = nullptr;
};

}  // namespace cairn::node
