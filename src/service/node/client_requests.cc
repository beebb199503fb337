// SPDX-License-Identifier: Apache-2.0
#include "service/node/client_requests.h"

#include <errno.h>

#include <memory>
#include <string>
#include <utility>

#include "service/process/descriptor_path.h"
#include "service/process/log.h"
#include "service/treatment/generations.h"

namespace cairn::node {

ClientRequests::ClientRequests(const RequestTargets& targets)
    : to_(targets),
      syncs_(targets.memory, targets.files, targets.flusher,
             [this](std::uint64_t device) { return to_.durability.retire_all(device); }) {}

void ClientRequests::start() {
  requests_.start();
  keeps_.start();
  syncs_.start();
}

void ClientRequests::stop() {
  requests_.stop();
  keeps_.stop();
  syncs_.stop();
}

void ClientRequests::on_departure(Owner dead, Departure how) { to_.reaper.departed(dead, how); }

void ClientRequests::on_inherited(Owner old) { to_.reaper.inherited(old); }

void ClientRequests::on_descriptor(ObjectIndex object) {
  to_.durability.note_descriptor(object);
  // The object may be dirty already; a scheduler that looked before the descriptor came would
  // sleep on it. Or it was stored before, and the descriptor is not needed.
  const Object& record = to_.memory.objects().at(object);
  if (record.dirty_blocks.load() != 0 || record.opens.load() == 0) to_.flusher.kick(false);
  end_generations(object);
}

void ClientRequests::on_array_read(const message::ArrayRead& read, Owner reader) {
  to_.gatherer.on_array_read(read, reader);
}

void ClientRequests::on_packed_read(const message::PackedRead& read, Owner reader) {
  to_.gatherer.unpacker().on_packed_read(read, reader);
}

void ClientRequests::on_array_news(const message::ArrayNews& told, std::uint32_t run) {
  const ObjectKey file = to_.memory.objects().at(told.object).key();
  if (file.kind == ObjectKind::kRegion) return;
  if (to_.arrays.note(run, file, told.news))
    to_.arrays.name_file(file, path_of_file(told.sender, told.descriptor, file.id.inode));
  if (!to_.hints.is_empty()) use_hints(told, run, file);
}

// A process says what its dataset is before it reads of it.
void ClientRequests::use_hints(const message::ArrayNews& told, std::uint32_t run,
                               const ObjectKey& file) {
  const arrays::DatasetNews& news = told.news;
  if (const auto grid = to_.hints.grid_for(run, to_.arrays.path_of(file), news))
    to_.gatherer.expect(told.object, {news.shape, news.cell_bytes, news.offset}, *grid);
}

void ClientRequests::on_discarded(ObjectIndex object) {
  // Another file may have the record by now; but not while the log has something of the old one.
  if (to_.memory.objects().at(object).has(kObjectRetired)) to_.durability.note_removed(object);
  if (const StoreFilePtr file = to_.files.find(object)) to_.files.drop_if_idle(file);
  to_.files.unsynced().release(object);
  (void)to_.memory.objects().reclaim(object, to_.clients.service(), to_.memory.owners());
}

void ClientRequests::on_question(Asker asker, const message::Flush& flush) {
  requests_.submit(std::move(asker),
                   [this, flush] { return to_.flusher.flush_now(flush.object, flush.durable); });
}

void ClientRequests::on_question(Asker asker, const message::Sync& sync) {
  syncs_.submit(std::move(asker), sync.device);
}

void ClientRequests::on_question(Asker asker, const message::MeetUnserved& meet) {
  asker.answer(to_.unserved.meet(meet.object));
}

void ClientRequests::on_question(Asker asker, const message::MakeDurable& durable) {
  to_.durability.make_durable(std::move(asker), durable.object);
}

void ClientRequests::on_question(Asker asker, const message::NoteCut& cut) {
  to_.durability.note_cut(std::move(asker), cut.object, cut.size);
}

void ClientRequests::on_question(Asker asker, const message::NoteRenamed& renamed) {
  to_.durability.note_renamed(renamed.object);
  asker.answer(0);
}

void ClientRequests::on_question(Asker asker, message::MakeNamesDurable names) {
  // Lost on its way, for want of a number: there is one soon.
  if (!names.directory) return asker.answer(-EAGAIN);
  to_.durability.make_names_durable(std::move(asker), std::move(names.directory), names.in_store);
}

void ClientRequests::on_unserved(Asker asker) {
  const std::lock_guard lock(unserved_mutex_);
  unserved_.push_back(std::move(asker));
  if (unserved_.size() > 1) return;  // the one before has submitted for both
  requests_.submit(Asker(), [this] {
    store_for_unserved();
    return 0;
  });
}

// One pass for all who have asked by now: many processes that cannot be served come at once.
void ClientRequests::store_for_unserved() {
  std::vector<Asker> askers;
  {
    const std::lock_guard lock(unserved_mutex_);
    askers.swap(unserved_);
  }
  const int result = to_.unserved.store_everything();
  for (Asker& asker : askers) asker.answer(result);
}

void ClientRequests::on_keep_through(Asker asker, LedgerId ledger, UniqueFd file,
                                     const protocol::UnservedMessage& told) {
  const auto kept = std::make_shared<UniqueFd>(std::move(file));
  keeps_.submit(std::move(asker), [this, ledger, kept, told] {
    const int error = to_.unserved.keep(ledger, *kept, told.reason);
    if (error < 0 || told.description == 0) return error;
    return to_.unserved.move_offset_to_kernel(
        *kept, static_cast<DescriptionIndex>(told.description), told.generation);
  });
}

void ClientRequests::on_claims_settled() { to_.reaper.look_again(); }

void ClientRequests::on_ledger_over() {
  keeps_.submit(Asker(), [this] {
    to_.unserved.release_over();
    return 0;
  });
}

void ClientRequests::log(const std::string& text) { log::info("{}", text); }

// The first byte of a file has come: the generations that it follows end, where a rule says so.
void ClientRequests::end_generations(ObjectIndex object) const {
  if (to_.memory.objects().at(object).handling().mode != BufferingMode::kScratch) return;
  const std::vector<FileRule> lifetimes = to_.rules.lifetimes();
  const StoreFilePtr file = lifetimes.empty() ? nullptr : to_.files.find(object);
  if (file == nullptr) return;
  const std::string path = to_.scratch.path_of(file->fd.get());
  const auto exists = [](const std::string& old) { return ::access(old.c_str(), F_OK) == 0; };
  for (const FileRule& rule : lifetimes) {
    for (const std::string& old : ended_generations(rule, path, exists))
      to_.scratch.forget_file(old);
  }
}

}  // namespace cairn::node
