// SPDX-License-Identifier: Apache-2.0
// What is known of the device of the backing store. To find that out is to ask the store, which may
// never answer: a thread does it, and everybody else has what was found last.
//
// Thread safety: any thread; only stop() waits for the store. Ownership: owns its thread, which the
// first ask() starts.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

namespace cairn::node {

class StoreLook {
 public:
  // `look` asks the store; from the thread.
  explicit StoreLook(std::function<nlohmann::json()> look) : look_(std::move(look)) {}
  ~StoreLook() { stop(); }
  StoreLook(const StoreLook&) = delete;
  StoreLook& operator=(const StoreLook&) = delete;

  // Has the store asked again.
  void ask();
  // What the last answer was; an empty object: there was none yet.
  nlohmann::json last() const;
  void stop();

 private:
  void work();

  const std::function<nlohmann::json()> look_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool is_asked_ = false;
  bool is_stopping_ = false;
  nlohmann::json last_ = nlohmann::json::object();
  std::thread thread_;
};

}  // namespace cairn::node
