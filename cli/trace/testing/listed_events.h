// SPDX-License-Identifier: Apache-2.0
//
// A trace of the given events, of files of the given names and of two processes. After the last
// event it has the given status.
//
// Thread safety: none. Ownership: its own copies.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "service/trace/trace_event.h"

namespace cairn::cli {

class ListedEvents final : public TraceSource {
 public:
  ListedEvents(std::vector<TraceEvent> events, const std::vector<std::string>& files = {},
               Status status = Status::ok())
      : events_(std::move(events)), status_(std::move(status)) {
    for (const std::string& name : files) names_.files.append(name);
    for (const char* name : {"rank 0", "rank 1"}) names_.processes.append(name);
  }
  bool next(TraceEvent* event) override {
    if (next_ == events_.size()) return false;
    *event = events_[next_++];
    return true;
  }
  Status status() const override { return next_ == events_.size() ? status_ : Status::ok(); }
  const TraceNames& names() const override { return names_; }

 private:
  const std::vector<TraceEvent> events_;
  const Status status_;
  TraceNames names_;
  std::size_t next_ = 0;
};

}  // namespace cairn::cli
