// SPDX-License-Identifier: Apache-2.0
#include "service/node/rescue.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/crash_point.h"
#include "base/private_file.h"
#include "base/size_text.h"
#include "service/attachment/memory_notice_file.h"
#include "service/attachment/process_look.h"
#include "service/durable_log/directory_storage.h"
#include "service/durable_log/left_programs.h"
#include "service/node/heritage.h"
#include "service/node/node_directory.h"
#include "service/node/service_memory.h"
#include "service/process/descriptor_limit.h"
#include "service/process/log.h"
#include "service/process/log_file.h"
#include "service/recovery/takeover.h"
#include "service/replay/stored_files.h"
#include "service/rescue/left_sockets.h"
#include "service/rescue/rescue_directory.h"
#include "service/rescue/rescue_store.h"
#include "service/write_back/detachment.h"

namespace cairn::node {
namespace {

constexpr int kRescueStored = 0;
constexpr int kRescueUnstored = 74;
// A writer that lives stores its last block itself.
constexpr int kLooksMax = 20;
constexpr useconds_t kLookPauseMicros = 50'000;

class Rescue {
 public:
  Rescue(const NodeConfig& config, NodeMemory& memory, Heritage& heritage, KeptLife& life,
         NodeDirectory directory)
      : config_(config),
        memory_(memory),
        life_(life),
        watch_(memory),
        files_(memory),
        sockets_(memory, files_, *heritage.left, directory.client_socket()),
        died_in_(life.rescue_step.load()),
        died_of_(static_cast<ObjectIndex>(life.rescue_object.load())),
        is_log_replayed_(heritage.log_replayed.load() != 0),
        directory_(std::move(directory)) {
    memory_.owners().watch_with(&watch_);
  }

  int run(Heritage& heritage) {
    CAIRN_CRASH_POINT("rescue.begun");
    take_name();
    CAIRN_CRASH_POINT("rescue.named");
    withdraw_offers();
    for (UniqueFd& fd : heritage.left->take_writable_files())
      (void)files_.adopt(std::move(fd), FileRoom());
    sockets_.read();
    // Where the last rescue died of a file, that file is saved, not stored.
    RescueStore store(memory_, files_, self_, life_, fatal());
    // Other stores do not wait for one that hangs.
    if (store.has_unheard()) store.store_all();
    store.take_over(heritage.left->take_readable_files());
    detach_clients(memory_, Detachment::kOrphaned);
    CAIRN_CRASH_POINT("rescue.detached");
    store.store_all();
    CAIRN_CRASH_POINT("rescue.stored");
    // What a client was about to hand over or to write has come by now.
    sockets_.read();
    detach_clients(memory_, Detachment::kOrphaned);
    for (int looks = 0; looks < kLooksMax; ++looks) {
      store.store_all();
      if (store.unstored().empty() || !has_living_writers(store)) break;
      ::usleep(kLookPauseMicros);
    }
    CAIRN_CRASH_POINT("rescue.stored-again");
    store.make_durable();
    return finish(store);
  }

 private:
  ObjectIndex fatal() const {
    return died_in_ == RescueStep::kStore || died_in_ == RescueStep::kSave ? died_of_
                                                                           : ObjectIndex::kNone;
  }

  void take_name() {
    if (died_in_ != RescueStep::kTakeover && life_.rescues.load() == 1) {
      life_.rescue_step.store(RescueStep::kTakeover);
      bound_step(memory_.shape().tier_bytes[0]);
      if (const auto taken = take_over(memory_); taken.is_ok()) self_ = taken->service;
      life_.rescue_step.store(RescueStep::kNone);
    }
    if (self_) return;
    memory_.slot(ClientSlot::kOfService).pid.store(::getpid());
    self_ = memory_.owners().succeed(ClientSlot::kOfService);
    (void)memory_.requests().return_taken();
  }

  // Processes that start wait for a greeting instead, and so for what they read.
  void withdraw_offers() {
    remove_notice(directory_.client_socket());
    for (std::atomic<std::uint32_t>& offer : memory_.service_board().offers) offer.store(0);
    for (std::uint32_t slot = 1; slot < memory_.slot_count(); ++slot) {
      SlotOffer& offer = memory_.slot(static_cast<std::uint16_t>(slot)).offer;
      if (const std::uint32_t number = offer.number_if_open(); number != 0)
        (void)offer.withdraw(number);
    }
  }

  bool has_living_writers(const RescueStore& store) const {
    for (const UnrescuedFile& file : store.unstored()) {
      if (file.error == 0 && memory_.objects().at(file.object).writers.load() != 0) return true;
    }
    return false;
  }

  std::string reason(const UnrescuedFile& file) const {
    if (file.error == 0) return "nobody has left a descriptor of the file";
    if (file.object == fatal() && file.error == EFAULT) return "a rescue died of storing it";
    return std::strerror(file.error);
  }

  // Returns whether all is saved that the store lacks.
  bool save(const UnrescuedFile& file, RescueDirectory* saved) {
    const StoreFilePtr known = files_.find(file.object);
    const SavedSource source{file.object, known ? path_of_descriptor(known->fd.get()) : "",
                             reason(file)};
    log::error("not stored: {}: {}", source.path.empty() ? "(unknown)" : source.path, source.why);
    if (died_in_ == RescueStep::kSave && file.object == died_of_) {
      saved->list_unreadable(source);
      return false;
    }
    life_.rescue_object.store(raw(file.object));
    life_.rescue_step.store(RescueStep::kSave);
    bound_step(std::uint64_t{memory_.objects().at(file.object).dirty_blocks.load()} * kBlockBytes);
    const bool is_whole = saved->save(source);
    life_.rescue_step.store(RescueStep::kNone);
    return is_whole;
  }

  // The durable log keeps what it has of them: it may be all that has the bytes.
  void list_lost(const std::vector<ObjectIndex>& lost, RescueDirectory* saved) const {
    for (const ObjectIndex object : lost) {
      const SavedSource source{object, files_.path_of(object),
                               "the store may have lost bytes that no tier has"};
      log::error("{}: {}", source.path.empty() ? "(unknown)" : source.path, source.why);
      saved->list_lost(source);
    }
  }

  // A durable log would bring older bytes back when a node next starts on it, or over those that
  // `cairn rescue` puts in their place. What it has of other files, from a death of the machine
  // before, is still owed; and so is what it alone has (`needed`).
  void void_log(const std::set<FileId>& needed) {
    if (config_.durable_log_bytes == 0 || !is_log_replayed_) return;
    ObjectTable& objects = memory_.objects();
    std::set<FileId> safe;
    bool is_all_void = needed.empty();
    for (std::uint32_t index = 1; index < objects.used(); ++index) {
      const Object& object = objects.at(static_cast<ObjectIndex>(index));
      // Without a descriptor nobody has asked the store; in trouble, the log alone has its bytes.
      const bool is_synced =
          files_.find(static_cast<ObjectIndex>(index)) != nullptr && object.log_trouble.load() == 0;
      if (!object.is_in_log()) continue;
      const bool is_safe = is_synced && !needed.contains(object.key().id);
      if (is_safe) safe.insert(object.key().id);
      is_all_void = is_all_void && is_safe;
    }
    const std::string& directory = durable_directory();
    const auto left = durable::forget_stored(directory, [&safe](const durable::FileIdentity& file) {
      return safe.contains(file.key.id);
    });
    if (!left) {
      log::error("the durable log in {} still has older data of stored and saved files: {}",
                 directory, left.status().message());
      if (!safe.empty()) directory_.note_old_log(directory);
      return;
    }
    for (std::uint32_t index = 1; index < objects.used(); ++index) {
      Object& object = objects.at(static_cast<ObjectIndex>(index));
      if (safe.contains(object.key().id)) object.log_position.store(0);
    }
    is_log_void_ = is_all_void && *left == 0;
  }

  // Requires: there is a log.
  const std::string& durable_directory() const {
    return config_.tiers[durable_tier_of(config_)].directory;
  }

  int finish(const RescueStore& store) {
    RescueDirectory saved(memory_, config_.name, rescue_places(config_.node_directory));
    std::set<FileId> unsaved;
    std::set<FileId> unstored;
    for (const UnrescuedFile& file : store.unstored()) {
      const FileId id = memory_.objects().at(file.object).key().id;
      unstored.insert(id);
      if (!save(file, &saved) || !file.is_rest_durable) unsaved.insert(id);
    }
    const std::vector<ObjectIndex> lost = store.lost();
    list_lost(lost, &saved);
    for (const ObjectIndex object : lost) {
      unsaved.insert(memory_.objects().at(object).key().id);
      unstored.insert(memory_.objects().at(object).key().id);
    }
    const bool is_durable = saved.finish();
    CAIRN_CRASH_POINT("rescue.saved");
    void_log(is_durable ? unsaved : unstored);
    CAIRN_CRASH_POINT("rescue.log-told");
    sockets_.answer_questions();
    log::warn("the rescue has stored {} of {} files", format_size(store.stored_bytes()),
              store.stored_files());
    if (store.unstored().empty() && lost.empty()) {
      detach_clients(memory_, Detachment::kEnded);
      if (is_log_void_) durable::forget_programs(durable::log_folder_of(durable_directory()));
      directory_.note_stored();
      return kRescueStored;
    }
    log::error("not stored: {} of {} files are in {}, {} are lost{}",
               format_size(saved.saved_bytes()), saved.files(), saved.path(),
               format_size(saved.lost_bytes()),
               is_durable ? "" : "; whether all of it survives a crash is not known");
    CAIRN_CRASH_POINT("rescue.ending");
    directory_.keep_client_socket();
    directory_.note_rescue({saved.path(), saved.files(), saved.saved_bytes(), saved.lost_bytes()});
    return kRescueUnstored;
  }

  const NodeConfig& config_;
  NodeMemory& memory_;
  KeptLife& life_;
  ProcessLook watch_;
  Owner self_;
  StoreFiles files_;
  LeftSockets sockets_;
  const RescueStep died_in_;
  const ObjectIndex died_of_;
  const bool is_log_replayed_;  // else all of it is an earlier node's
  bool is_log_void_ = false;    // of files of all nodes
  // Goes first: a client that finds a name without a listener takes the node for dead.
  NodeDirectory directory_;
};

int fail_rescue(const Status& status) {
  log::error("no rescue is possible: {}", status.message());
  return kRescueUnstored;
}

}  // namespace

int run_rescue(const NodeConfig& config, Succession& succession) {
  CAIRN_CHECK(succession.is_successor());
  ::prctl(PR_SET_NAME, "cairn-rescue");
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
  ::umask(077);
  Heritage heritage(succession);
  auto directory = NodeDirectory::adopt(config.node_directory, config.name,
                                        heritage.left->take(KeptKind::kNodeLock));
  if (!directory) return fail_rescue(directory.status());
  heritage.labels.note(directory->lock(), {KeptKind::kNodeLock});
  open_log(directory->log());
  (void)raise_descriptor_limit();
  auto memory = inherit_memory(config, *heritage.left, heritage.labels);
  if (!memory) return fail_rescue(memory.status());
  Rescue rescue(config, *memory, heritage, *succession.life, std::move(directory.value()));
  const int status = rescue.run(heritage);
  close_log();
  return status;
}

}  // namespace cairn::node
