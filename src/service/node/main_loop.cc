// SPDX-License-Identifier: Apache-2.0
#include "service/node/main_loop.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "service/process/log.h"
#include "service/process/log_file.h"

namespace cairn::node {

namespace {

constexpr std::chrono::milliseconds kRest(50);

}  // namespace

MainLoop::MainLoop(MainLoopParts parts)
    : with_(std::move(parts)), stop_event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void MainLoop::request_stop() {
  stopping_ = true;
  wake();
}

void MainLoop::request_stop_when_unused() {
  unwanted_ = true;
  wake();
}

void MainLoop::note_run_ended() {
  if (unwanted_) wake();
}

void MainLoop::note_departure() {
  if (unwanted_) wake();
}

void MainLoop::wake() const {
  const std::uint64_t one = 1;
  (void)!::write(stop_event_.get(), &one, sizeof one);
}

void MainLoop::take_wakes() const {
  std::uint64_t wakes = 0;
  (void)!::read(stop_event_.get(), &wakes, sizeof wakes);
}

MainLoop::Ending MainLoop::serve(EndSignals& signals, KeptFd launcher) {
  // Nobody has watched the directory between two services.
  keep_reachable();
  bool asked_before = false;
  for (;;) {
    pollfd entries[4] = {{signals.descriptor(), POLLIN, 0},
                         {stop_event_.get(), POLLIN, 0},
                         {launcher.get(), 0, 0},
                         {with_.directory.watch(), POLLIN, 0}};
    // A drain reads the signals that come while it stores: those wake no poll.
    const int count = ::poll(entries, 4, signals.is_asking() ? 0 : wait_ms());
    if (count < 0) {
      // The kernel may lack memory for a moment, which is no reason to end with what is not stored.
      if (errno != EINTR) std::this_thread::sleep_for(kRest);
      continue;
    }
    if (entries[2].revents != 0) {
      launcher.reset();
      unwanted_ = true;
      log::info("the launcher is gone: the node ends when it is not used and all is stored");
    }
    if ((entries[1].revents & POLLIN) != 0) {
      take_wakes();
      if (stopping_) return Ending::kDrained;
    }
    if (entries[3].revents != 0 || unreachable_looks_ != 0 || with_.directory.watch() < 0)
      keep_reachable();
    if ((unwanted_ || is_unreachable()) && is_unused_and_stored(signals)) return Ending::kDrained;
    if (!signals.take()) continue;
    if (asked_before) return Ending::kAtOnce;
    asked_before = true;
    if (with_.drain.run_and_tell(signals)) return Ending::kDrained;
    log::error(
        "not everything is stored: the node stays; a second signal ends it and loses the data");
  }
}

int MainLoop::wait_ms() const {
  constexpr int kLookMs = 60'000;  // at a directory that the kernel cannot watch
  constexpr int kAgainMs = 250;
  int wait = end_.wait_ms();
  if (with_.directory.watch() < 0) wait = wait < 0 ? kLookMs : std::min(wait, kLookMs);
  if (unreachable_looks_ == 0) return wait;
  return wait < 0 || !is_unreachable() ? kAgainMs : wait;
}

// For good, as it seems: the removal of a whole tree takes a moment.
bool MainLoop::is_unreachable() const { return unreachable_looks_ > kUnreachableLooks; }

// Somebody has removed the node's directory, or the sockets in it: nobody could tell the node
// anything any more, neither to store nor to end. Where they cannot be made again it is tried
// again, and the node ends when it is not used and all is stored.
void MainLoop::keep_reachable() {
  if (with_.directory.is_intact()) {
    unreachable_looks_ = 0;
    return;
  }
  Status made = with_.directory.restore();
  if (made) made = with_.listen_again();
  if (made) {
    move_log(with_.directory.log());
    log::warn("the files of the node were removed: they have been made again");
  } else if (unreachable_looks_ == kUnreachableLooks) {
    log::error("the files of the node were removed, and cannot be made again: {}", made.message());
  }
  // The new directory may go as well before the watch on it begins, so the loop looks once more.
  ++unreachable_looks_;
}

bool MainLoop::is_unused() const {
  return with_.clients.busy_count() == 0 && with_.runs.is_empty();
}

// Deaths of clients and ends of runs wake the main thread; what cannot be stored is tried again.
bool MainLoop::is_unused_and_stored(EndSignals& signals) {
  end_.forget();
  if (!is_unused()) {
    if (is_unreachable()) end_.put_off();
    return false;
  }
  const DrainOutcome outcome = with_.drain.run(signals, [this] { return stopping_.load(); });
  if (outcome.stored) return is_unused();
  if (end_.put_off()) {
    LastDrain::log_unstored(outcome.left);
    log::error(
        "nobody uses the node any more, and not everything is stored: it goes on trying; `cairn "
        "down --node {0} --discard` ends it and loses the data",
        with_.name);
  }
  return false;
}

}  // namespace cairn::node
