// SPDX-License-Identifier: Apache-2.0
// Records what programs access to a trace file (service/trace/trace_writer.h), from a start to a
// stop.
//
// Thread safety: start(), stop() and counts() from any thread; on_accesses() by one. Ownership: the
// file.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>

#include "service/attachment/client_table.h"
#include "service/learning/access_observer.h"
#include "service/learning/event_reader.h"
#include "service/trace/trace_writer.h"

namespace cairn::node {

class TraceRecorder final : public AccessObserver {
 public:
  TraceRecorder(const NodeMemory& memory, EventReader& events, const ClientTable& clients)
      : memory_(memory), events_(events), clients_(clients) {}

  // For a connection, with whose end the recording ends. Errors: one is being recorded; the file
  // cannot be made.
  Status start(const std::string& path, std::uint64_t session);
  void on_close(std::uint64_t session);
  struct Recorded {
    std::string path;
    std::uint64_t events = 0;
    std::uint64_t bytes = 0;
    std::uint64_t lost = 0;  // events that the node did not get meanwhile
  };
  // Writes what is left. Errors: none is being recorded; the file could not be written.
  Result<Recorded> stop();

  void on_accesses(std::span<const ToldAccess> batch) override;

 private:
  std::uint64_t io_ns() const;  // of all processes so far
  Status append(const ToldAccess& told, std::int64_t at_ns);
  Result<std::uint32_t> file_of(const ToldAccess& told);
  Result<std::uint32_t> process_of(Owner owner);

  const NodeMemory& memory_;
  EventReader& events_;
  const ClientTable& clients_;
  std::mutex mutex_;
  std::unique_ptr<TraceWriter> writer_;  // null: nothing is being recorded
  std::string path_;
  std::uint64_t session_ = 0;
  Status status_;  // the first error
  std::int64_t began_ns_ = 0;
  std::uint64_t lost_before_ = 0;
  std::uint64_t io_ns_before_ = 0;
  std::unordered_map<std::uint32_t, std::pair<ObjectKey, std::uint32_t>> files_;  // by object
  std::unordered_map<std::uint16_t, std::pair<Owner, std::uint32_t>> processes_;  // by slot
};

}  // namespace cairn::node
