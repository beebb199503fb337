// SPDX-License-Identifier: Apache-2.0
// Composes the service: the only place that knows all of its parts.
#include "service/node/service.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <thread>

#include "base/check.h"
#include "base/clock.h"
#include "base/crash_point.h"
#include "base/size_text.h"
#include "base/test_capacities.h"
#include "service/attachment/attach_server.h"
#include "service/attachment/request_reader.h"
#include "service/capacity/account_registry.h"
#include "service/capacity/idle_profiler.h"
#include "service/capacity/organizer_thread.h"
#include "service/capacity/page_warmer.h"
#include "service/capacity/placement_engine.h"
#include "service/capacity/tier_watch.h"
#include "service/control/control_commands.h"
#include "service/durability/node_durability.h"
#include "service/fetching/prefetcher.h"
#include "service/gathering/chunk_gatherer.h"
#include "service/keeping/keeper.h"
#include "service/keeping/standby.h"
#include "service/node/array_parts.h"
#include "service/node/client_requests.h"
#include "service/node/heritage.h"
#include "service/node/last_drain.h"
#include "service/node/learners.h"
#include "service/node/log_end.h"
#include "service/node/main_loop.h"
#include "service/node/node_directory.h"
#include "service/node/part_options.h"
#include "service/node/replay_at_start.h"
#include "service/node/rescue.h"
#include "service/node/service_memory.h"
#include "service/plugins/predictor_plugin.h"
#include "service/process/descriptor_limit.h"
#include "service/process/log.h"
#include "service/process/log_file.h"
#include "service/recovery/takeover.h"
#include "service/sampling/sampler.h"
#include "service/treatment/rule_registry.h"
#include "service/treatment/scratch_space.h"
#include "service/write_back/descriptor_budget.h"
#include "service/write_back/detachment.h"
#include "service/write_back/end_bound.h"
#include "service/write_back/store_files.h"
#include "service/write_back/unserved_files.h"
#include "service/write_back/write_rights.h"

namespace cairn::node {
namespace {

constexpr int kExitStarted = 0;
constexpr int kExitFailed = 1;
constexpr int kExitUnstored = 74;
// Until threads that do not end are left behind at the end of the process.
constexpr std::chrono::seconds kBound(5);

class Service {
 public:
  Service(const NodeConfig& config, NodeDirectory& directory, NodeMemory memory, Heritage& heritage)
      : config_(config), directory_(directory), heritage_(heritage), memory_(std::move(memory)) {}

  // After a failed start, threads that call each other end before any of them is gone.
  ~Service() {
    sampler_.stop();
    reaper_.stop();
    learners_.stop();
    gatherer_.stop();
    if (prefetcher_) prefetcher_->stop();
  }
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  Status start() {
    const bool is_told = kept_.has_heritage();
    CAIRN_RETURN_IF_ERROR(take_rules());
    CAIRN_RETURN_IF_ERROR(load_predictor());
    if (!is_told) {
      CAIRN_RETURN_IF_ERROR(learners_.declarations().load(config_.orders_file));
      kept_.save();
    }
    // The dead service's descriptors of the log, which lock it, are closed with others of no file.
    if (heritage_.left) adopt_files(*heritage_.left);
    CAIRN_RETURN_IF_ERROR(open_durable_log());
    // What else the log has is of a machine that died, and is recovery's.
    if (heritage_.left) durability_.inherit();
    durability_.start(config_);
    learners_.start_replacement(prefetcher_.get());
    CAIRN_CRASH_POINT("service.files-adopted");
    flusher_.start();
    reaper_.start();
    organizer_.start();
    tiers_.start();
    warmer_.start();
    profiler_.start();
    learners_.start(prefetcher_.get());
    gatherer_.start();
    requests_.start();
    reader_.start();
    descriptors_.measure();
    CAIRN_RETURN_IF_ERROR(begin_attachment());
    CAIRN_CRASH_POINT("service.attached");
    return begin_control();
  }

  // The service before this one was leaving when it died.
  void end() { loop_.request_stop(); }
  void end_when_unused() { loop_.request_stop_when_unused(); }

  // The one before was killed. 0: there is none, so what is dirty should not stay so.
  void note_keeper(pid_t keeper) {
    memory_.service_board().keeper.store(keeper);
    if (keeper != 0) {
      log::warn("the node's keeper was killed; process {} keeps the node now", keeper);
    } else {
      log::error(
          "the node's keeper was killed, and no process can be had for another one: "
          "storing everything now");
      flusher_.kick(true);
    }
  }

  // Until the end. Returns the exit status.
  int serve(EndSignals& signals, KeptFd launcher) {
    return leave(loop_.serve(signals, std::move(launcher)) == MainLoop::Ending::kAtOnce);
  }

 private:
  Status begin_attachment() {
    if (!heritage_.left) {
      clients_.begin_offers();
      return attach_.start(directory_.client_socket());
    }
    clients_.adopt();
    CAIRN_CRASH_POINT("service.clients-adopted");
    CAIRN_RETURN_IF_ERROR(attach_.adopt(directory_.client_socket(), *heritage_.left));
    CAIRN_CRASH_POINT("service.connections-adopted");
    reaper_.owe_audit();
    descriptors_.measure();
    clients_.begin_offers();
    flusher_.discard_deleted();
    flusher_.kick(false);
    const std::int64_t took_ns = monotonic_ns() - heritage_.life.last_end_ns.load();
    log::warn("killed by signal {}; {} ms later the next service goes on with {} clients, {} files",
              heritage_.life.last_signal.load(), took_ns / 1'000'000, clients_.active_count(),
              files_.count());
    return Status::ok();
  }

  Status begin_control() {
    if (heritage_.control.listener < 0) return control_.start(directory_.control_socket());
    const std::vector<std::uint64_t> sessions = heritage_.control.sessions();
    run_commands_.end_absent(sessions);
    CAIRN_CRASH_POINT("service.runs-adopted");
    CAIRN_RETURN_IF_ERROR(control_.adopt(heritage_.control));
    learners_.declarations().declare_again();
    return Status::ok();
  }

  // Before anybody flushes: what is dirty has its descriptor then.
  void adopt_files(Inheritance& left) {
    for (UniqueFd& fd : left.take_writable_files())
      (void)files_.adopt(std::move(fd), descriptors_.of_open());
    for (const UniqueFd& fd : left.take_readable_files()) files_.adopt_stored(fd);
    files_.forget_missing();
    flusher_.take_over();
  }

  void after_sweep(const SweepCounts& counts) {
    if (counts.blocks_unlocked + counts.buckets_freed != 0) {
      log::info("a client died at work: {} blocks unlocked, {} buckets and {} slabs returned",
                counts.blocks_unlocked, counts.buckets_freed, counts.slabs);
    }
    flusher_.discard_deleted();
    files_.drop_idle();
    // Where nobody is, nothing is under way, and a death in the wrong moment is put right.
    (void)clients_.if_nobody(clients_.attach_count(), 0, [this] { descriptors_.measure(); });
    learners_.events().note_deaths();
    loop_.note_departure();
    // The flusher stores the dirty data of the dead, and settles times that nobody else settles.
    if (files_.count() != 0) flusher_.kick(false);
  }

  Status open_durable_log() {
    CAIRN_RETURN_IF_ERROR(replay_at_start(config_, memory_, clients_.service(), heritage_));
    CAIRN_RETURN_IF_ERROR(log_.open(config_, memory_, clients_.service()));
    if (log_.is_open()) flusher_.use_log(log_.files());
    return Status::ok();
  }

  // The predictor that the configuration names takes part in fetching ahead.
  Status load_predictor() {
    if (config_.predictor_file.empty()) return Status::ok();
    auto loaded = PredictorPlugin::load(
        config_.predictor_file, [](const std::string& complaint) { log_warning(complaint); });
    if (!loaded) return {loaded.status().code(), "prefetch.plugin: " + loaded.status().message()};
    CAIRN_CHECK(predictor_ == nullptr && *loaded != nullptr);
    predictor_ = std::move(loaded.value());
    if (prefetcher_) prefetcher_->add(*predictor_, predictor_->name());
    log::info("predictor '{}' is that of {}", predictor_->name(), config_.predictor_file);
    return Status::ok();
  }

  // The node's own policy, mode and trigger, and its schema.
  Status take_rules() {
    const auto policy = placement_.number_of(config_.placement_policy);
    if (!policy) return policy.status();
    ObjectHandling handling;
    handling.mode = config_.mode;
    handling.trigger = config_.trigger;
    handling.durability = config_.durability;
    memory_.rules().set_default_handling(handling);
    if (kept_.has_heritage()) return kept_.restore();
    std::vector<FileRule> rules;
    for (const std::string& directory : config_.scratch_directories) {
      const auto place = scratch_.add(0, directory);
      if (!place) return place.status();
      rules.push_back(scratch_rule(directory));
    }
    rules.insert(rules.end(), config_.rules.begin(), config_.rules.end());
    add_hints_of_rules(0, rules, &arrays_.hints);
    return rules_.load(rules);
  }

  std::unique_ptr<Prefetcher> make_prefetcher() {
    if (config_.prefetch_percent == 0) return nullptr;
    return std::make_unique<Prefetcher>(
        PrefetcherOptions{config_, memory_, clients_.service(), files_, flusher_, directories_,
                          learners_.declarations().orders(), learners_.streams(), fetches_});
  }

  Status listen_again() {
    CAIRN_RETURN_IF_ERROR(attach_.listen_again(directory_.client_socket()));
    return control_.listen_again(directory_.control_socket());
  }

  int leave(bool at_once) {
    CAIRN_CRASH_POINT("service.leaving");
    // An end at once waits for nobody; no end waits for requests of commands for long.
    std::optional<EndBound> bound;
    if (at_once) bound.emplace(kBound, kExitUnstored, heritage_.life);
    clients_.end_offers();
    // No new dirty data from here on: clients that are still there write through.
    detach_clients(memory_);
    int status = last_drain_.finish(at_once) ? kExitStarted : kExitUnstored;
    if (at_once) bound.emplace(kBound, status, heritage_.life);
    CAIRN_CRASH_POINT("service.drained");
    attach_.stop();
    // What a client was about to write or to hand over has come by now.
    detach_clients(memory_);
    if (status == kExitStarted && !last_drain_.finish(at_once)) status = kExitUnstored;
    if (status == kExitStarted) directory_.note_stored();
    reader_.stop();
    if (!bound) bound.emplace(kBound, status, heritage_.life);
    control_.stop();
    if (!at_once) bound.reset();
    requests_.stop();
    const bool is_log_empty = !at_once && durability_.finish();
    durability_.stop();
    scratch_.forget_strays(files_);
    if (!bound) bound.emplace(kBound, log_.has_failed() ? kExitUnstored : status, heritage_.life);
    CAIRN_CRASH_POINT("service.ending");
    sampler_.stop();
    learners_.stop();
    gatherer_.stop();
    if (prefetcher_) prefetcher_->stop();
    profiler_.stop();
    warmer_.stop();
    tiers_.stop();
    organizer_.stop();
    reaper_.stop();
    flusher_.stop();
    const bool is_all_durable = status == kExitStarted && !at_once;
    if (!end_log(config_, memory_, &log_, {is_all_durable, is_log_empty})) status = kExitUnstored;
    log::info("node {} ends", config_.name);
    return status;
  }

  const NodeConfig& config_;
  NodeDirectory& directory_;
  Heritage& heritage_;
  NodeMemory memory_;
  const std::int64_t started_ns_ = monotonic_ns();
  // Clients and their runs.
  DescriptorBudget descriptors_{memory_};
  ClientTable clients_{memory_, descriptors_, heritage_.memory};
  RunTable runs_;
  BufferedDirectories directories_{config_, runs_};
  // Writing back.
  AccountRegistry accounts_{memory_, clients_, config_};
  StoreFiles files_{memory_};
  NodeLog log_;
  Flusher flusher_{memory_, files_, clients_.service(), flush_options(config_),
                   [](const std::string& text) { log::warn("{}", text); }};
  NodeDurability durability_{memory_, files_, flusher_, log_};
  UnservedFiles unserved_{memory_, flusher_, clients_.service(), heritage_.memory};
  // Deaths.
  std::shared_mutex fetches_;  // held shared while something is fetched for programs
  Audit audit_{memory_, clients_, unserved_,
               [this] { return flusher_.is_quiet() && organizer_.is_at_rest(); },
               [this] { return Audit::Stillness(fetches_, std::try_to_lock); }};
  Reaper reaper_{memory_, clients_, audit_,
                 [this](const SweepCounts& counts) { after_sweep(counts); }};
  // Treatment.
  PlacementEngine placement_{memory_, figures_of(config_), log_warning};
  RuleRegistry rules_{memory_, config_, accounts_,
                      [this](const std::string& name) { return placement_.number_of(name); }};
  ScratchSpace scratch_{memory_, clients_.service(), config_.node_directory + "/scratch",
                        heritage_.left ? ScratchBegin::kAsLeft : ScratchBegin::kEmpty};
  // Learning, and what acts on it.
  Learners learners_{{config_, memory_, clients_, placement_, files_, directories_}};
  OrganizerThread organizer_{memory_, clients_.service(), config_, flusher_,
                             Deciders{placement_, learners_.replacement()}};
  TierWatch tiers_{{memory_, clients_.service(), config_, flusher_, accounts_, log_warning}};
  PageWarmer warmer_{memory_};
  IdleProfiler profiler_{memory_, config_, placement_,
                         [](const std::string& text) { log::info("{}", text); }};
  std::unique_ptr<PredictorPlugin> predictor_;  // null: only those that are built in
  std::unique_ptr<Prefetcher> prefetcher_ = make_prefetcher();  // null: nothing is fetched ahead
  ChunkGatherer gatherer_{{memory_, clients_.service(), files_, flusher_, fetches_,
                           config_.prefetch_percent, config_.remember_directory}};
  ArrayParts arrays_{config_, memory_, gatherer_, kept_};
  // The main thread.
  LastDrain last_drain_{memory_, files_, flusher_};
  MainLoop loop_{MainLoopParts{config_.name, directory_, last_drain_, clients_, runs_,
                               [this] { return listen_again(); }}};
  // What a successor finds of runs and rules.
  KeptState kept_{KeptRegistries{runs_, accounts_, placement_, rules_, scratch_, flusher_,
                                 learners_.declarations(), arrays_.hints},
                  &heritage_.state};
  // The commands.
  Stager stager_{memory_, clients_.service(), flusher_, directories_, fetches_};
  DrainRequest drain_{memory_, files_, flusher_, durability_};
  LearningReport learning_report_{config_, memory_, learners_.events(), prefetcher_.get(),
                                  learners_.learned()};
  StatusReport status_{StatusSources{config_, memory_, clients_, runs_, accounts_, files_, flusher_,
                                     unserved_, reaper_, learning_report_, started_ns_, durability_,
                                     &heritage_.life, &arrays_.report}};
  Explanation explanation_{config_, memory_, placement_, rules_, directories_};
  NodeGauges gauges_{config_, memory_, clients_, durability_, [this](unsigned number) {
                       return prefetcher_ ? prefetcher_->predictor_name(number) : std::string();
                     }};
  Sampler sampler_{SamplerSources{config_, memory_, clients_, gauges_, learners_.file_costs(),
                                  learners_.heat(), learners_.store(), learners_.learned()}};
  RunCommands run_commands_{RunKeepers{config_, memory_, runs_, clients_, accounts_, rules_,
                                       scratch_, flusher_, reaper_, drain_, status_, loop_, kept_,
                                       &arrays_.book, &arrays_.hints, &sampler_}};
  FileCommands file_commands_{memory_, accounts_, rules_, stager_, kept_};
  LearningCommands learning_commands_{LearningParts{memory_, learners_.events(),
                                                    learners_.declarations(), learners_.heat(),
                                                    learners_.recorder(), kept_}};
  ControlCommands commands_{ControlParts{config_, memory_, status_, explanation_, drain_,
                                         run_commands_, file_commands_, learning_commands_, loop_,
                                         &arrays_.commands}};
  // The sockets.
  ClientRequests requests_{RequestTargets{memory_, clients_, reaper_, files_, flusher_, unserved_,
                                          rules_, scratch_, durability_, gatherer_, arrays_.book,
                                          arrays_.hints}};
  RequestReader reader_{memory_, requests_};
  AttachServer attach_{
      AttachServer::Parts{memory_, clients_, files_, unserved_, requests_, heritage_.labels}};
  ControlServer control_{commands_, &heritage_.labels};
};

void tell(int ready, const std::string& text) {
  if (ready >= 0) (void)!::write(ready, text.data(), text.size());
}

int fail(int ready, const Status& status) {
  log::error("{}", status.message());
  tell(ready, status.message() + "\n");
  return kExitFailed;
}

// A successor cannot start. The node's data is whole, and the keeper's still: after a moment
// another service may be luckier.
[[noreturn]] void leave_to_another(const Status& status) {
  log::error("{}", status.message());
  std::this_thread::sleep_for(std::chrono::seconds(1));
  std::abort();
}

// What a keeper of a new image is started with; the number of the kept memory follows.
std::vector<std::string> successor_arguments(const NodeConfig& config) {
  return {"cairn",     "node-service", "--name",
          config.name, "--config",     config.node_directory + "/config.yaml",
          "--succeed"};
}

// The next part of a service's life: from its directory and its memory to its end.
int serve(const NodeConfig& config, Succession& succession) {
  CAIRN_CHECK(succession.life != nullptr);
  Heritage heritage(succession);
  Inheritance* left = heritage.left ? &*heritage.left : nullptr;
  // From the first moment on, so that a death before the node is ready is no failure of the start.
  KeptFd ready(left != nullptr ? left->take(KeptKind::kLauncher) : UniqueFd(config.ready_fd),
               heritage.labels, {KeptKind::kLauncher});
  // A launcher that has heard one service does not read what the next ones say.
  if (ready) (void)::fcntl(ready.get(), F_SETFL, O_NONBLOCK);
  heritage.launcher = ready.get();
  const auto give_up = [&](const Status& status) {
    if (left != nullptr) leave_to_another(status);
    return fail(ready.get(), status);
  };
  EndSignals signals(EndSignals::watch(), succession.keeper);
  if (signals.descriptor() < 0) return give_up(Status::from_errno(errno, "cannot watch signals"));
  ::umask(077);
  auto directory = left != nullptr ? NodeDirectory::adopt(config.node_directory, config.name,
                                                          left->take(KeptKind::kNodeLock))
                                   : NodeDirectory::open(config.node_directory, config.name);
  if (!directory) return give_up(directory.status());
  heritage.labels.note(directory->lock(), {KeptKind::kNodeLock});
  open_log(directory->log());
  const std::uint64_t descriptors = raise_descriptor_limit();
  if (const int error = give_up_set_id_rights(); error != 0)
    log::warn("set-id bits may outlive writes: {}", std::strerror(error));
  auto memory = left != nullptr ? inherit_memory(config, *left, heritage.labels)
                                : create_memory(config, heritage.labels);
  if (!memory) return give_up(memory.status());
  Takeover taken;
  if (left != nullptr) {
    auto done = take_over(*memory);
    if (!done) return give_up(done.status());
    taken = done.value();
    log_takeover(taken);
  }
  memory->service_board().keeper.store(succession.keeper);
  ::prctl(PR_SET_NAME, "cairn-node");
  Service service(config, directory.value(), std::move(memory.value()), heritage);
  if (const Status status = service.start(); !status) return give_up(status);
  log::info("node {} is ready: RAM tier {}, {} file tiers, {} descriptors", config.name,
            format_size(config.ram_capacity_bytes), config.tiers.size(), descriptors);
  tell(ready.get(), "ready\n");
  if (taken.was_leaving) service.end();
  // The launcher of a private node waits for its end as well: the node must not outlive it unused.
  if (!config.private_node) ready.reset();
  if (config.private_node && left != nullptr && !ready)
    service.end_when_unused();  // as the service before this one had been told
  heritage.left.reset();
  KeeperWatch watch(succession, successor_arguments(config),
                    [&service](pid_t keeper) { service.note_keeper(keeper); });
  watch.start();
  const int status = service.serve(signals, std::move(ready));
  succession.life->done.store(1 + status);
  watch.stop();
  close_log();
  return status;
}

}  // namespace

int run_service(const NodeConfig& config) {
  auto succession = Succession::begin();
  if (!succession) return fail(config.ready_fd, succession.status());
  return serve(config, *succession);
}

namespace {
KeeperLimits keeper_limits() {
  KeeperLimits limits;
  // Tests kill a service more often than any machine does.
  const std::uint32_t deaths = capacity_of("deaths", UINT32_MAX);
  if (deaths != UINT32_MAX) limits.deaths_max = deaths;
  return limits;
}

KeptWork work_of(const NodeConfig& config) {
  return {[&config](Succession& succession) { return serve(config, succession); },
          [&config](Succession& succession) { return run_rescue(config, succession); }};
}

}  // namespace

int run_kept_service(const NodeConfig& config) {
  return keep_service(keeper_limits(), work_of(config));
}

int run_succeeding_service(const NodeConfig& config, int kept_memory) {
  auto succession = Succession::of_dead(kept_memory);
  if (!succession) return fail(-1, succession.status());
  return keep_successor(keeper_limits(), std::move(succession.value()), work_of(config));
}

}  // namespace cairn::node
