// SPDX-License-Identifier: Apache-2.0
// What is known of the device of the backing store: of the first directory that the node buffers,
// which without one of its own is the one that its first run has started in. To find out is to ask
// the store, which may never answer: a thread does it, and everybody else has what was found last.
//
// Thread safety: any thread; only stop() waits for the store. Ownership: owns its thread, which the
// first ask() starts; borrows the directories.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "service/profiler/tier_figures.h"
#include "service/treatment/buffered_directories.h"

namespace cairn::node {

class StoreFigures {
 public:
  using Figures = std::shared_ptr<const profiler::TierFigures>;
  using Look = std::function<profiler::TierFigures(const std::string& directory)>;

  explicit StoreFigures(const BufferedDirectories& directories)
      : StoreFigures(directories, [](const std::string& directory) {
          return profiler::figures_for(directory, profiler::TierKind::kDirectory);
        }) {}
  // `look` asks the store; from the thread.
  StoreFigures(const BufferedDirectories& directories, Look look)
      : directories_(directories), look_(std::move(look)) {}
  ~StoreFigures() { stop(); }
  StoreFigures(const StoreFigures&) = delete;
  StoreFigures& operator=(const StoreFigures&) = delete;

  // Has the store asked again; nothing while the node knows of no directory.
  void ask();
  // What the last answer was; null: there was none yet.
  Figures last() const;
  // The same. Has the store asked if nobody has.
  Figures last_or_ask();
  void stop();

 private:
  void ask_locked();
  void work();

  const BufferedDirectories& directories_;
  const Look look_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::string directory_;  // of the store; empty: the node knows of none
  bool is_asked_ = false;
  bool is_stopping_ = false;
  Figures last_;
  std::thread thread_;
};

}  // namespace cairn::node
