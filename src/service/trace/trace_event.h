// SPDX-License-Identifier: Apache-2.0
// What a trace consists of: events, the names that their numbers stand for, and where they come
// from, whatever the kind of file.
//
// Thread safety: none. Ownership: values; a source owns its file and its names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"

namespace cairn {

enum class TraceKind : std::uint8_t {
  kOpen = 0,
  kClose,
  kReadMiss,        // from the backing store; also every read of a trace that does not say
  kReadHit,         // from a tier, where an earlier use had left it
  kReadPrefetched,  // from a tier, where the prefetcher had put it
  kWrite,
  kAdvice,  // the program said what it is going to do (posix_fadvise, madvise)
  // The program had its data made durable (fsync): when that was done, and as `length` how many
  // microseconds it took.
  kSync
};
inline constexpr unsigned kTraceKinds = 8;

struct TraceEvent {
  std::uint64_t time_ns = 0;  // since the trace began
  std::uint64_t offset = 0;
  std::uint32_t length = 0;
  std::uint32_t file = 0;     // of TraceNames
  std::uint32_t process = 0;  // of TraceNames
  std::uint32_t stream = 0;   // what of a process reads in one order: a thread, or an open file
  TraceKind kind = TraceKind::kOpen;

  friend bool operator==(const TraceEvent&, const TraceEvent&) = default;
};

// Names in the order of their first appearance, which is their number.
class NameTable {
 public:
  // The number of the name, a new one if it is new.
  std::uint32_t number_of(std::string_view name);
  // Adds a name of which only the number counts, though it may be there already.
  void append(std::string name) { names_.push_back(std::move(name)); }
  // Requires: number < count().
  const std::string& name(std::uint32_t number) const { return names_[number]; }
  std::uint32_t count() const { return static_cast<std::uint32_t>(names_.size()); }

 private:
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
};

struct TraceNames {
  NameTable files;
  NameTable processes;
};

class TraceSource {
 public:
  TraceSource() = default;
  virtual ~TraceSource() = default;
  TraceSource(const TraceSource&) = delete;
  TraceSource& operator=(const TraceSource&) = delete;

  // Returns: false when there is no further event: the trace is over, or status() says why not.
  virtual bool next(TraceEvent* event) = 0;
  virtual Status status() const = 0;
  // What there is to be said about a trace that could be read all the same, such as that its end is
  // missing. Complete when next() has returned false.
  virtual std::string warning() const { return {}; }
  // Whether fsyncs are among the events.
  virtual bool has_syncs() const { return false; }
  // What all processes together spent in calls that read or write, 0 where the trace does not say.
  // Complete when next() has returned false.
  virtual std::uint64_t io_ns() const { return 0; }
  // The names of the events so far; there may be more later.
  virtual const TraceNames& names() const = 0;
};

}  // namespace cairn
