// SPDX-License-Identifier: Apache-2.0
// An object that the service has open itself for as long as it is in scope: so that its record
// stays that file's while it is fetched from.
//
// Thread safety: one thread each. Ownership: borrows everything.
#pragma once

#include "memory/buffer/object_io.h"
#include "memory/tiers/actor.h"
#include "service/write_back/flusher.h"
#include "service/write_back/store_files.h"

namespace cairn::node {

// The service makes nothing dirty while it fetches, and hands over nothing. Where it closes a file
// last, because the program has closed it meanwhile, it drops the descriptor for storing it, as
// after the program's message that the file is gone.
class DiscardingService final : public HandOver {
 public:
  DiscardingService(const NodeMemory& memory, Owner self, StoreFiles& files)
      : memory_(memory), self_(self), files_(files) {}
  bool hand_over(ObjectIndex object, const Backing& backing) override;
  int request_flush(ObjectIndex object, bool durable) override;
  void discarded(ObjectIndex object) override;

 private:
  const NodeMemory& memory_;
  const Owner self_;
  StoreFiles& files_;
};

class ServiceOpen {
 public:
  // `status`: what the backing says of the file.
  ServiceOpen(Actor& actor, Backing& backing, const StoreStatus& status, StoreFiles& files,
              Flusher& flusher);
  ~ServiceOpen();
  ServiceOpen(const ServiceOpen&) = delete;
  ServiceOpen& operator=(const ServiceOpen&) = delete;

  // kNone: the table of objects is full.
  ObjectIndex index() const { return index_; }
  bool is_open() const { return index_ != ObjectIndex::kNone; }
  // Requires: it is open.
  ObjectAccess access() { return {actor_, index_, backing_, service_}; }

 private:
  Actor& actor_;
  Backing& backing_;
  DiscardingService service_;
  Flusher& flusher_;
  const ObjectIndex index_;
};

}  // namespace cairn::node
