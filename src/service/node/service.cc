// SPDX-License-Identifier: Apache-2.0
// Composes the service: the only place that knows all of its parts.
#include "service/node/service.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/size_text.h"
#include "policy/replacement/policies.h"
#include "service/attachment/attach_server.h"
#include "service/capacity/account_book.h"
#include "service/capacity/idle_profiler.h"
#include "service/capacity/organizer_thread.h"
#include "service/capacity/page_warmer.h"
#include "service/capacity/placement_engine.h"
#include "service/capacity/read_balancer.h"
#include "service/control/control_commands.h"
#include "service/fetching/prefetcher.h"
#include "service/learning/admission_costs.h"
#include "service/learning/event_reader.h"
#include "service/learning/future_book.h"
#include "service/learning/heat_book.h"
#include "service/learning/learned_replacement.h"
#include "service/learning/trace_recorder.h"
#include "service/node/new_memory.h"
#include "service/node/node_directory.h"
#include "service/plugins/predictor_plugin.h"
#include "service/process/descriptor_limit.h"
#include "service/process/log_file.h"
#include "service/treatment/generations.h"
#include "service/treatment/rule_book.h"
#include "service/treatment/scratch_space.h"
#include "service/write_back/descriptor_budget.h"
#include "service/write_back/end_bound.h"
#include "service/write_back/request_worker.h"
#include "service/write_back/store_files.h"
#include "service/write_back/sync_worker.h"
#include "service/write_back/unserved_files.h"
#include "service/write_back/write_rights.h"

namespace cairn::node {
namespace {

constexpr int kExitStarted = 0;
constexpr int kExitFailed = 1;
constexpr int kExitUnstored = 74;
// Until threads that do not end are left behind at the end of the process.
constexpr int kEndSeconds = 5;

// Null when blocks leave in the order of their last use, which nobody has to learn.
std::unique_ptr<LearnedReplacement> learned_replacement(const NodeMemory& memory,
                                                        const NodeConfig& config) {
  if (config.replacement_expert == replacement_policies()[0]->name()) return nullptr;
  return std::make_unique<LearnedReplacement>(memory, config.replacement_expert,
                                              config.evict_high_percent);
}

FlushOptions flush_options(const NodeConfig& config) {
  return FlushOptions{config.flush_delay_ms, config.flush_streams, config.flush_dirty_high_percent,
                      config.flush_retry_ms, config.flush_amount_bytes};
}

// What was measured of each tier, or what its class lets expect; the RAM tier first.
std::vector<profiler::TierFigures> figures_of(const NodeConfig& config) {
  std::vector<profiler::TierFigures> figures;
  figures.push_back(profiler::figures_for("", profiler::TierKind::kMemory));
  for (const FileTierConfig& tier : config.tiers)
    figures.push_back(profiler::figures_for(tier.directory, profiler::TierKind::kDirectory));
  return figures;
}

// When the end of a node that nobody wants is tried again because something could not be stored.
// Of the main thread alone.
class DeferredEnd {
 public:
  // For poll(): negative until something happens.
  int wait_ms() const {
    if (at_ns_ == 0) return -1;
    return static_cast<int>(std::max<std::int64_t>(0, (at_ns_ - monotonic_ns()) / 1'000'000));
  }
  void forget() { at_ns_ = 0; }
  // Returns whether it is to be said: less and less often.
  bool put_off() {
    const bool is_to_be_said = pause_ms_ < kPauseMsMax;
    pause_ms_ = pause_ms_ == 0 ? kPauseMsMin : std::min(2 * pause_ms_, kPauseMsMax);
    at_ns_ = monotonic_ns() + pause_ms_ * std::int64_t{1'000'000};
    return is_to_be_said;
  }

 private:
  static constexpr int kPauseMsMin = 1000;
  static constexpr int kPauseMsMax = 60'000;
  int pause_ms_ = 0;
  std::int64_t at_ns_ = 0;
};

class Service final : public AttachEvents, public StopRequest {
 public:
  Service(const NodeConfig& config, NodeDirectory& directory, NodeMemory memory)
      : config_(config),
        directory_(directory),
        memory_(std::move(memory)),
        descriptors_(memory_),
        clients_(memory_, descriptors_),
        directories_(config, runs_),
        accounts_(memory_, clients_, config),
        files_(memory_),
        flusher_(memory_, files_, clients_.service(), flush_options(config),
                 [](const std::string& text) { spdlog::warn("{}", text); }),
        unserved_(memory_, flusher_, clients_.service()),
        audit_(
            memory_, clients_, unserved_,
            [this] { return flusher_.is_quiet() && organizer_.is_at_rest(); },
            [this] { return prefetcher_.hold_still(); }),
        reaper_(memory_, clients_, audit_,
                [this](const SweepCounts& counts) { after_sweep(counts); }),
        placement_(memory_, figures_of(config), log_warning),
        rules_(memory_, config, accounts_,
               [this](const std::string& name) { return placement_.number_of(name); }),
        scratch_(memory_, clients_.service(), config.node_directory + "/scratch"),
        future_(memory_),
        learned_(learned_replacement(memory_, config)),
        organizer_(memory_, clients_.service(), config, flusher_, placement_,
                   learned_ ? static_cast<const ReplacementPolicy&>(*learned_)
                            : *replacement_policies()[0]),
        warmer_(memory_),
        profiler_(memory_, config, placement_,
                  [](const std::string& text) { spdlog::info("{}", text); }),
        events_(memory_, config.events_keep_percent),
        prefetcher_(
            PrefetcherOptions{config, memory_, clients_.service(), files_, flusher_, directories_}),
        balancer_(memory_, clients_,
                  [this](unsigned tier) { return placement_.figures_of(tier).read_bandwidth; }),
        heat_(memory_, config.node_directory),
        recorder_(memory_, events_),
        syncs_(memory_, files_, flusher_),
        stager_(memory_, clients_.service(), flusher_, directories_),
        drain_(memory_, files_, flusher_),
        learning_report_(config, memory_, events_, prefetcher_, learned_.get()),
        status_(StatusSources{config, memory_, clients_, runs_, accounts_, files_, flusher_,
                              unserved_, reaper_, learning_report_, monotonic_ns()}),
        explanation_(config, memory_, placement_, rules_, directories_),
        run_commands_(RunKeepers{config, memory_, runs_, clients_, accounts_, rules_, scratch_,
                                 flusher_, reaper_, drain_, status_, *this}),
        file_commands_(memory_, accounts_, rules_, stager_),
        learning_commands_(memory_, events_, prefetcher_, heat_, recorder_),
        commands_(ControlParts{config, memory_, status_, explanation_, drain_, run_commands_,
                               file_commands_, learning_commands_, *this}),
        attach_(memory_, clients_, files_, unserved_, *this),
        control_(commands_) {
    stop_event_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  }

  // Of a start that failed: threads that call each other end before any of them is gone.
  ~Service() {
    reaper_.stop();
    events_.stop();
    prefetcher_.stop();
  }
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  Status start() {
    CAIRN_RETURN_IF_ERROR(take_rules());
    CAIRN_RETURN_IF_ERROR(load_predictor());
    CAIRN_RETURN_IF_ERROR(prefetcher_.load_orders());
    start_replacement();
    flusher_.start();
    reaper_.start();
    organizer_.start();
    warmer_.start();
    profiler_.start();
    start_learning();
    requests_.start();
    keeps_.start();
    syncs_.start();
    descriptors_.measure();
    CAIRN_RETURN_IF_ERROR(attach_.start(directory_.client_socket()));
    return control_.start(directory_.control_socket());
  }

  // Sleeps until the end is asked for. `launcher` is a pipe whose other end the launcher of a
  // private node holds as long as it lives. Returns the exit status.
  int serve(int signals, UniqueFd launcher) {
    bool asked_before = false;
    for (;;) {
      pollfd entries[4] = {{signals, POLLIN, 0},
                           {stop_event_.get(), POLLIN, 0},
                           {launcher.get(), 0, 0},
                           {directory_.watch(), POLLIN, 0}};
      const int count = ::poll(entries, 4, wait_ms());
      if (count < 0 && errno != EINTR) return kExitFailed;
      if (count < 0) continue;
      if (entries[2].revents != 0) {
        launcher.reset();
        unwanted_ = true;
        spdlog::info("the launcher is gone: the node ends when it is not used and all is stored");
      }
      if ((entries[1].revents & POLLIN) != 0) {
        std::uint64_t wakes = 0;
        (void)!::read(stop_event_.get(), &wakes, sizeof wakes);
        if (stopping_) return leave(false);
      }
      if (entries[3].revents != 0 || unreachable_looks_ != 0 || directory_.watch() < 0)
        keep_reachable();
      if ((unwanted_ || is_unreachable()) && is_unused_and_stored(signals)) return leave(false);
      if ((entries[0].revents & POLLIN) == 0) continue;
      signalfd_siginfo info{};
      if (::read(signals, &info, sizeof info) != sizeof info) continue;
      spdlog::info("signal {} from process {}", info.ssi_signo, info.ssi_pid);
      if (asked_before) return leave(true);
      asked_before = true;
      if (drain_until_signal(signals)) return leave(false);
      spdlog::error(
          "not everything is stored: the node stays; a second signal ends it and loses the data");
    }
  }

  void on_departure(Owner dead, Departure how) override { reaper_.departed(dead, how); }
  void on_inherited(Owner old) override { reaper_.inherited(old); }
  void on_descriptor(ObjectIndex object) override {
    // The object may be dirty already; a scheduler that looked before the descriptor came would
    // sleep on it.
    if (memory_.objects().at(object).dirty_blocks.load() != 0) flusher_.kick(false);
    end_generations(object);
  }
  void on_discarded(ObjectIndex object) override {
    if (const StoreFilePtr file = files_.find(object)) files_.drop_if_idle(file);
    files_.release(object);
    (void)memory_.objects().reclaim(object, clients_.service(), memory_.owners());
  }
  void on_flush_request(SharedFd connection, ObjectIndex object, bool durable) override {
    requests_.submit(std::move(connection),
                     [this, object, durable] { return flusher_.flush_now(object, durable); });
  }
  void on_unserved(SharedFd connection) override {
    requests_.submit(std::move(connection), [this] { return unserved_.store_everything(); });
  }
  void on_keep_through(SharedFd connection, LedgerId ledger, UniqueFd file,
                       const protocol::UnservedMessage& told) override {
    const auto kept = std::make_shared<UniqueFd>(std::move(file));
    keeps_.submit(std::move(connection), [this, ledger, kept, told] {
      const int error = unserved_.keep(ledger, *kept, told.reason);
      if (error < 0 || told.description == 0) return error;
      return unserved_.move_offset_to_kernel(*kept, static_cast<DescriptionIndex>(told.description),
                                             told.generation);
    });
  }
  void on_ledger_over() override {
    keeps_.submit(nullptr, [this] {
      unserved_.release_over();
      return 0;
    });
  }
  void on_sync_request(SharedFd connection, std::uint64_t device) override {
    syncs_.submit(std::move(connection), device);
  }
  void log(const std::string& text) override { spdlog::info("{}", text); }
  void request_stop() override {
    stopping_ = true;
    wake();
  }
  void request_stop_when_unused() override {
    unwanted_ = true;
    wake();
  }
  void note_run_ended() override {
    if (unwanted_) wake();
  }

 private:
  void after_sweep(const SweepCounts& counts) {
    if (counts.blocks_unlocked + counts.buckets_freed != 0) {
      spdlog::info("a client died at work: {} blocks unlocked, {} buckets and {} slabs returned",
                   counts.blocks_unlocked, counts.buckets_freed, counts.slabs);
    }
    flusher_.discard_deleted();
    files_.drop_idle();
    // Where nobody is, nothing is under way, and a death in the wrong moment is put right.
    (void)clients_.if_nobody(clients_.attach_count(), [this] { descriptors_.measure(); });
    events_.note_deaths();
    if (unwanted_) wake();
    // What the dead left dirty is for the flusher; times that nobody will settle any more, too.
    if (files_.count() != 0) flusher_.kick(false);
  }

  // Before the organizer asks for anything.
  void start_replacement() {
    if (learned_ == nullptr) return;
    future_.follow(&prefetcher_.orders(), [this](const ToldAccess& told) {
      return path_of_descriptor(memory_.slot(told.slot()).pid.load(), told.event.descriptor);
    });
    if (prefetcher_.is_wanted()) future_.leave_out_files();
    prefetcher_.set_found_repeated([this](const ToldAccess& told, RepeatedOrder order) {
      future_.found(told, std::move(order));
    });
    learned_->set_future(&future_);
    if (!config_.admits_by_value) return;
    learned_->admit_by_value(
        [this, store = store_figures(config_.buffer_directories)](TierId tier) {
          return admission_costs(store, placement_.figures_of(raw(tier)));
        });
  }

  // Who learns from what programs access: the most urgent first.
  void start_learning() {
    events_.add([this](std::span<const ToldAccess>) { prefetcher_.adopt_declared(); });
    if (config_.prefetches_by_heat && prefetcher_.is_wanted()) place_by_heat();
    if (prefetcher_.is_wanted())
      events_.add([this](std::span<const ToldAccess> batch) { prefetcher_.take(batch); });
    if (learned_ != nullptr) {
      events_.add([this](std::span<const ToldAccess> batch) { future_.take(batch); });
      events_.add([this](std::span<const ToldAccess> batch) { learned_->take(batch); });
      events_.add_forgetter([this] { future_.forget_dead(); });
    }
    if (config_.balances_reads)
      events_.add([this](std::span<const ToldAccess> batch) { balancer_.take(batch); });
    events_.add([this](std::span<const ToldAccess> batch) { heat_.take(batch); });
    events_.add([this](std::span<const ToldAccess> batch) { recorder_.take(batch); });
    events_.add_forgetter([this] { prefetcher_.forget_dead(); });
    events_.add_forgetter([this] { heat_.forget_dead(); });
    prefetcher_.start();
    events_.start();
  }

  // The part of each tier that is for what was fetched ahead is for what is hot as well.
  void place_by_heat() {
    std::vector<std::uint64_t> capacities;
    for (unsigned tier = 0; tier < memory_.tiers_for(BufferingMode::kAsync); ++tier) {
      const std::uint64_t slabs = memory_.pool(static_cast<TierId>(tier)).slab_count();
      capacities.push_back(slabs * kBlockBytes * config_.prefetch_percent / 100);
    }
    heat_.set_placer(std::make_unique<HeatPlacer>(
        capacities, HeatTrigger::Limits{}, monotonic_ns(),
        [this](ObjectIndex object, const HeatRange& range, std::optional<TierId> to, bool rises) {
          if (to) prefetcher_.carry_by_heat(object, range.offset, range.bytes, *to, rises);
        }));
  }

  // The predictor that the configuration names takes part in fetching ahead.
  Status load_predictor() {
    if (config_.predictor_file.empty()) return Status::ok();
    auto loaded = PredictorPlugin::load(
        config_.predictor_file, [](const std::string& complaint) { log_warning(complaint); });
    if (!loaded) return {loaded.status().code(), "prefetch.plugin: " + loaded.status().message()};
    predictor_ = std::move(loaded.value());
    prefetcher_.add(*predictor_, predictor_->name());
    spdlog::info("predictor '{}' is that of {}", predictor_->name(), config_.predictor_file);
    return Status::ok();
  }

  // The node's own policy, mode and trigger, and its schema.
  Status take_rules() {
    const auto policy = placement_.number_of(config_.placement_policy);
    if (!policy) return policy.status();
    ObjectHandling handling;
    handling.mode = config_.mode;
    handling.trigger = config_.trigger;
    memory_.header().default_handling.store(handling.bits());
    std::vector<FileRule> rules;
    for (const std::string& directory : config_.scratch_directories) {
      const auto place = scratch_.add(0, directory);
      if (!place) return place.status();
      rules.push_back(scratch_rule(directory));
    }
    rules.insert(rules.end(), config_.rules.begin(), config_.rules.end());
    return rules_.load(rules);
  }

  // The first byte of a file has come: the generations that it follows end, where a rule says so.
  void end_generations(ObjectIndex object) {
    if (memory_.objects().at(object).handling().mode != BufferingMode::kScratch) return;
    const std::vector<FileRule> lifetimes = rules_.lifetimes();
    const StoreFilePtr file = lifetimes.empty() ? nullptr : files_.find(object);
    if (file == nullptr) return;
    const std::string path = scratch_.path_of(file->fd.get());
    const auto exists = [](const std::string& old) { return ::access(old.c_str(), F_OK) == 0; };
    for (const FileRule& rule : lifetimes) {
      for (const std::string& old : ended_generations(rule, path, exists))
        scratch_.forget_file(old);
    }
  }

  void wake() const {
    const std::uint64_t one = 1;
    (void)!::write(stop_event_.get(), &one, sizeof one);
  }

  // Returns whether all is stored. A signal that comes meanwhile ends the wait.
  bool drain_until_signal(int signals) {
    DrainOptions options;
    options.progress = [signals](const DrainProgress&) {
      pollfd entry{signals, POLLIN, 0};
      return ::poll(&entry, 1, 0) == 0;
    };
    const DrainOutcome outcome = drain(memory_, files_, flusher_, options);
    log_unstored(outcome.left);
    return outcome.stored;
  }

  int wait_ms() const {
    constexpr int kLookMs = 60'000;  // at a directory that the kernel cannot watch
    constexpr int kAgainMs = 250;
    int wait = end_.wait_ms();
    if (directory_.watch() < 0) wait = wait < 0 ? kLookMs : std::min(wait, kLookMs);
    if (unreachable_looks_ == 0) return wait;
    return wait < 0 || !is_unreachable() ? kAgainMs : wait;
  }

  // For good, as it seems: who removes a whole tree is at it for a moment.
  bool is_unreachable() const { return unreachable_looks_ > kUnreachableLooks; }

  // Somebody has removed the node's directory, or the sockets in it: nobody could tell the node
  // anything any more, neither to store nor to end. Where they cannot be made again it is tried
  // again, and the node ends when it is not used and all is stored.
  void keep_reachable() {
    if (directory_.is_intact()) {
      unreachable_looks_ = 0;
      return;
    }
    Status made = directory_.restore();
    if (made) made = attach_.listen_again(directory_.client_socket());
    if (made) made = control_.listen_again(directory_.control_socket());
    if (made) {
      move_log(directory_.log());
      spdlog::warn("the files of the node were removed: they have been made again");
    } else if (unreachable_looks_ == kUnreachableLooks) {
      spdlog::error("the files of the node were removed, and cannot be made again: {}",
                    made.message());
    }
    // What was just made may be removed as well, before it is watched: it is looked at once more.
    ++unreachable_looks_;
  }

  bool is_unused() const { return clients_.busy_count() == 0 && runs_.is_empty(); }

  // Deaths of clients and ends of runs wake the main thread; what cannot be stored is tried again.
  bool is_unused_and_stored(int signals) {
    end_.forget();
    if (!is_unused()) {
      if (is_unreachable()) end_.put_off();
      return false;
    }
    DrainOptions options;
    options.progress = [this, signals](const DrainProgress&) {
      pollfd entry{signals, POLLIN, 0};
      return ::poll(&entry, 1, 0) == 0 && !stopping_;
    };
    const DrainOutcome outcome = drain(memory_, files_, flusher_, options);
    if (outcome.stored) return is_unused();
    if (end_.put_off()) {
      log_unstored(outcome.left);
      spdlog::error(
          "nobody uses the node any more, and not everything is stored: it goes on trying; `cairn "
          "down --node {0} --discard` ends it and loses the data",
          config_.name);
    }
    return false;
  }

  void log_unstored(const std::vector<UnstoredFile>& left) const {
    for (const UnstoredFile& file : left) {
      if (file.path.empty()) break;
      spdlog::error("not stored: {} ({} of it): {}", file.path, format_size(file.dirty_bytes),
                    file.error == 0 ? "not tried" : std::strerror(file.error));
    }
  }

  int leave(bool at_once) {
    // No new dirty data from here on: clients that are still there write through.
    memory_.header().detached.store(1, std::memory_order_seq_cst);
    int status = kExitStarted;
    if (at_once || !drain(memory_, files_, flusher_, DrainOptions()).stored) {
      const DirtyView left = view_dirty(memory_, files_, 100);
      log_unstored(left.files);
      if (!left.files.empty()) status = kExitUnstored;
    }
    if (status == kExitStarted) directory_.note_stored();
    // A user who has asked twice for the end does not wait for requests under way either.
    std::optional<EndBound> bound;
    if (at_once) bound.emplace(std::chrono::seconds(kEndSeconds), status);
    attach_.stop();
    control_.stop();
    requests_.stop();
    keeps_.stop();
    syncs_.stop();
    scratch_.forget_strays(files_);
    if (!bound) bound.emplace(std::chrono::seconds(kEndSeconds), status);
    events_.stop();
    prefetcher_.stop();
    profiler_.stop();
    warmer_.stop();
    organizer_.stop();
    reaper_.stop();
    flusher_.stop();
    spdlog::info("node {} ends", config_.name);
    return status;
  }

  const NodeConfig& config_;
  NodeDirectory& directory_;
  NodeMemory memory_;
  DescriptorBudget descriptors_;
  ClientTable clients_;
  RunTable runs_;
  BufferedDirectories directories_;
  AccountBook accounts_;
  StoreFiles files_;
  Flusher flusher_;
  UnservedFiles unserved_;
  Audit audit_;
  Reaper reaper_;
  PlacementEngine placement_;
  RuleBook rules_;
  ScratchSpace scratch_;
  FutureBook future_;
  std::unique_ptr<LearnedReplacement> learned_;  // null: oldest first
  OrganizerThread organizer_;
  PageWarmer warmer_;
  IdleProfiler profiler_;
  EventReader events_;
  std::unique_ptr<PredictorPlugin> predictor_;  // null: only those that are built in
  Prefetcher prefetcher_;
  ReadBalancer balancer_;
  HeatBook heat_;
  TraceRecorder recorder_;
  RequestWorker requests_;  // to store: a client may wait for it with a file's append lock
  RequestWorker keeps_;     // wait for such locks themselves
  SyncWorker syncs_;
  Stager stager_;
  DrainRequest drain_;
  LearningReport learning_report_;
  StatusReport status_;
  Explanation explanation_;
  RunCommands run_commands_;
  FileCommands file_commands_;
  LearningCommands learning_commands_;
  ControlCommands commands_;
  AttachServer attach_;
  ControlServer control_;
  UniqueFd stop_event_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> unwanted_{false};  // the launcher of a private node is gone
  DeferredEnd end_;
  // Looks at its directory, one after the other, that have found it incomplete.
  static constexpr unsigned kUnreachableLooks = 20;
  unsigned unreachable_looks_ = 0;  // of the main thread alone
};

void tell(const UniqueFd& ready, const std::string& text) {
  if (ready) (void)!::write(ready.get(), text.data(), text.size());
}

int fail(const UniqueFd& ready, const Status& status) {
  spdlog::error("{}", status.message());
  tell(ready, status.message() + "\n");
  return kExitFailed;
}

// All threads leave signals to the one that reads them; SIGHUP and SIGPIPE mean nothing to a
// service.
int watch_signals() {
  ::signal(SIGHUP, SIG_IGN);
  ::signal(SIGPIPE, SIG_IGN);
  // A file size limit is an error of one file, to be reported, and no reason to die.
  ::signal(SIGXFSZ, SIG_IGN);
  sigset_t watched;
  ::sigemptyset(&watched);
  ::sigaddset(&watched, SIGTERM);
  ::sigaddset(&watched, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &watched, nullptr);
  return ::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
}

}  // namespace

int run_service(const NodeConfig& config) {
  UniqueFd ready(config.ready_fd);
  const UniqueFd signals(watch_signals());
  if (!signals) return fail(ready, Status::from_errno(errno, "cannot watch signals"));
  ::umask(077);
  auto directory = NodeDirectory::open(config.node_directory, config.name);
  if (!directory) return fail(ready, directory.status());
  open_log(directory->log());
  const std::uint64_t descriptors = raise_descriptor_limit();
  if (const int error = give_up_set_id_rights(); error != 0)
    spdlog::warn("set-id bits may outlive writes: {}", std::strerror(error));
  auto memory = create_memory(config);
  if (!memory) return fail(ready, memory.status());
  ::prctl(PR_SET_NAME, "cairn-node");
  Service service(config, directory.value(), std::move(memory.value()));
  if (const Status status = service.start(); !status) return fail(ready, status);
  spdlog::info("node {} is ready: RAM tier {}, {} file tiers, {} descriptors", config.name,
               format_size(config.ram_capacity_bytes), config.tiers.size(), descriptors);
  tell(ready, "ready\n");
  // The launcher of a private node waits for its end as well: the node must not outlive it unused.
  if (!config.private_node) ready.reset();
  const int status = service.serve(signals.get(), std::move(ready));
  close_log();
  return status;
}

}  // namespace cairn::node
