// SPDX-License-Identifier: Apache-2.0
// Brings the records of sampled runs to their files, in a thread of its own: a home directory that
// does not answer holds up the records, and neither the samples nor the service's commands.
//
// A path keeps its newest text waiting, and no other. A path is left to the launcher when its run
// ends: what the launcher writes there is the last word.
//
// Thread safety: any thread; only stop() waits for files, and leave() for a bounded time.
// Ownership: owns its thread, which the first record starts. Errors: a record that cannot be
// written is named once in the node's log.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>

namespace cairn::node {

class RecordWriter {
 public:
  // Until a file that is being replaced is no longer waited for.
  static constexpr std::chrono::milliseconds kPatience{500};

  RecordWriter() = default;
  ~RecordWriter() { stop(); }
  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;

  void put(const std::string& path, std::string text);
  // A text that was put there and has no file yet gets none.
  void leave(const std::string& path);
  // Writes what waits. Nothing that is put later is written.
  void stop();

 private:
  void work();
  void write(std::unique_lock<std::mutex>* lock);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> waiting_;  // text by path
  std::string writing_;                         // the path of the file that is made; empty: none
  bool is_left_ = false;                        // it may not take its place any more
  bool is_replacing_ = false;                   // it takes its place
  std::set<std::string> failed_;
  bool is_stopping_ = false;
  std::thread thread_;
};

}  // namespace cairn::node
