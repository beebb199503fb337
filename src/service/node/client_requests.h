// SPDX-License-Identifier: Apache-2.0
// Hands the messages and questions of clients to the parts of the service that act on them.
//
// Thread safety: the functions of AttachEvents in the threads that it names; start() and
// stop() by the composing thread. Ownership: its workers' threads; borrows everything else.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "memory/tiers/node_memory.h"
#include "service/attachment/attach_server.h"
#include "service/attachment/client_table.h"
#include "service/attachment/reaper.h"
#include "service/durability/node_durability.h"
#include "service/gathering/array_book.h"
#include "service/gathering/array_hints.h"
#include "service/gathering/chunk_gatherer.h"
#include "service/treatment/rule_registry.h"
#include "service/treatment/scratch_space.h"
#include "service/write_back/flusher.h"
#include "service/write_back/request_worker.h"
#include "service/write_back/store_files.h"
#include "service/write_back/sync_worker.h"
#include "service/write_back/unserved_files.h"

namespace cairn::node {

// The parts that act; all of them outlive the requests.
struct RequestTargets {
  const NodeMemory& memory;
  const ClientTable& clients;
  Reaper& reaper;
  StoreFiles& files;
  Flusher& flusher;
  UnservedFiles& unserved;
  const RuleRegistry& rules;
  const ScratchSpace& scratch;
  NodeDurability& durability;
  ChunkGatherer& gatherer;
  ArrayBook& arrays;
  ArrayHints& hints;
};

class ClientRequests final : public AttachEvents {
 public:
  explicit ClientRequests(const RequestTargets& targets);

  void start();
  void stop();

  void on_departure(Owner dead, Departure how) override;
  void on_inherited(Owner old) override;
  void on_descriptor(ObjectIndex object) override;
  void on_discarded(ObjectIndex object) override;
  void on_array_read(const message::ArrayRead& read, Owner reader) override;
  void on_packed_read(const message::PackedRead& read, Owner reader) override;
  void on_array_news(const message::ArrayNews& told, std::uint32_t run) override;
  void on_question(Asker asker, const message::Flush& flush) override;
  void on_question(Asker asker, const message::Sync& sync) override;
  void on_question(Asker asker, const message::MeetUnserved& meet) override;
  void on_question(Asker asker, const message::MakeDurable& durable) override;
  void on_question(Asker asker, const message::NoteCut& cut) override;
  void on_question(Asker asker, const message::NoteRenamed& renamed) override;
  void on_question(Asker asker, message::MakeNamesDurable names) override;
  void on_unserved(Asker asker) override;
  void on_keep_through(Asker asker, LedgerId ledger, UniqueFd file,
                       const protocol::UnservedMessage& told) override;
  void on_claims_settled() override;
  void on_ledger_over() override;
  void log(const std::string& text) override;

 private:
  void use_hints(const message::ArrayNews& told, std::uint32_t run, const ObjectKey& file);
  void store_for_unserved();
  void end_generations(ObjectIndex object) const;

  const RequestTargets to_;
  RequestWorker requests_;  // to store: a client may wait for it with a file's append lock
  RequestWorker keeps_;     // wait for such locks themselves
  SyncWorker syncs_;
  std::mutex unserved_mutex_;
  std::vector<Asker> unserved_;  // wait for everything to be stored
};

}  // namespace cairn::node
