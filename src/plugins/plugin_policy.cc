// SPDX-License-Identifier: Apache-2.0
#include "plugins/plugin_policy.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "placement/placement_check.h"
#include "plugins/guarded_thread.h"
#include "plugins/plugin_guard.h"
#include "plugins/policy_conversion.h"

namespace cairn {
namespace {

constexpr std::size_t kNameBytesMax = 63;
// Loading reads files, so it may take as long as so many decisions.
constexpr int kLoadLimits = 20;

bool is_name(const char* name) {
  if (name == nullptr) return false;
  const std::size_t length = strnlen(name, kNameBytesMax + 1);
  constexpr const char* kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
  return length > 0 && length <= kNameBytesMax && strspn(name, kAllowed) == length;
}

// What one call reads and writes. A late call keeps it.
struct Call {
  std::array<cairn_tier_view, kTiersMax> tiers{};
  std::uint32_t tier_count = 0;
  cairn_placement_request request{};
  cairn_placement answer{};
  int failure = 0;
  PluginGuard::Thrown thrown;
};

std::string limit_text(std::chrono::milliseconds limit) {
  return "did not return within " + std::to_string(limit.count()) + " ms";
}

// ../lib/cairn/plugin_guard.so beside the folder of the running program, as the preload library is.
std::string guard_path() {
  char program[4096];
  const ssize_t length = readlink("/proc/self/exe", program, sizeof program);
  std::string path(program, length > 0 ? static_cast<std::size_t>(length) : 0);
  for (int component = 0; component < 2; ++component) {
    path.resize(std::min(path.rfind('/'), path.size()));
  }
  return path + "/lib/cairn/plugin_guard.so";
}

// The text of dlerror(), which may be none.
std::string linker_error() {
  const char* text = dlerror();
  return text == nullptr ? "unknown error of the dynamic linker" : text;
}

Result<const PluginGuard*> load_guard() {
  const std::string path = guard_path();
  void* object = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  void* entry = object == nullptr ? nullptr : dlsym(object, PluginGuard::kEntryPoint);
  if (entry == nullptr) {
    return Status(StatusCode::kUnavailable,
                  "no plugin can be loaded, the installation is incomplete: " + linker_error());
  }
  return reinterpret_cast<decltype(&cairn_plugin_guard)>(entry)();
}

}  // namespace

// What is known of the object. Written by the guarded thread while it loads, and constant then but
// for the strikes.
struct PluginPolicy::Plugin {
  std::string path;
  std::string name;
  PlanOrder order = PlanOrder::kWindow;
  PluginGuard::Solve solve = nullptr;
  const PluginGuard* guard = nullptr;
  Status status;
  std::atomic<unsigned> strikes{0};
  GuardedThread thread;

  Status fault(const std::string& what, StatusCode code = StatusCode::kInvalid) const {
    return {code, "placement policy " + path + " " + what};
  }
  Status open();
  Status read(const cairn_placement_policy* description);
};

// The object is never unloaded: a thread of it may still run.
Status PluginPolicy::Plugin::open() {
  const auto loaded = load_guard();
  if (!loaded) return loaded.status();
  guard = loaded.value();
  void* object = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (object == nullptr) return fault("is not loaded: " + linker_error());
  void* entry = dlsym(object, CAIRN_POLICY_ENTRY_POINT);
  if (entry == nullptr) {
    return fault("defines no " CAIRN_POLICY_ENTRY_POINT "(): it is none, or of another version");
  }
  PluginGuard::Thrown thrown;
  const cairn_placement_policy* description =
      guard->describe(reinterpret_cast<PluginGuard::Describe>(entry), &thrown);
  if (thrown.text[0] != '\0') {
    return fault(std::string("threw ") + thrown.text + " when it was loaded");
  }
  return read(description);
}

Status PluginPolicy::Plugin::read(const cairn_placement_policy* description) {
  if (description == nullptr) return fault("gives no description of itself");
  if (description->abi_version != CAIRN_POLICY_ABI_VERSION) {
    return fault("is made for version " + std::to_string(description->abi_version) +
                     " of the interface; this is version " +
                     std::to_string(CAIRN_POLICY_ABI_VERSION),
                 StatusCode::kIncompatible);
  }
  if (!is_name(description->name)) return fault("has no valid name");
  if (description->solve == nullptr) return fault("has no function to solve with");
  if (description->plan_order > CAIRN_PLAN_PER_UNIT) return fault("has an unknown plan order");
  name = description->name;
  order = static_cast<PlanOrder>(description->plan_order);
  solve = description->solve;
  return Status::ok();
}

Result<std::unique_ptr<PluginPolicy>> PluginPolicy::load(const std::string& path,
                                                         const PlacementPolicy& fallback,
                                                         Listener listener,
                                                         std::chrono::milliseconds time_limit) {
  // The job owns the plugin, too, since it may be late.
  const auto plugin = std::make_shared<Plugin>();
  // Without a slash the dynamic linker would search its own folders.
  plugin->path = path.find('/') == std::string::npos ? "./" + path : path;
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) {
    return plugin->fault(std::string("cannot be read: ") + std::strerror(errno),
                         StatusCode::kNotFound);
  }
  const std::chrono::milliseconds limit = time_limit * kLoadLimits;
  std::string thrown;
  switch (plugin->thread.run([plugin] { plugin->status = plugin->open(); }, limit, &thrown)) {
    case GuardedThread::Outcome::kDone:
      break;
    case GuardedThread::Outcome::kThrew:
      return plugin->fault("threw " + thrown + " when it was loaded");
    case GuardedThread::Outcome::kLate:
      return plugin->fault(limit_text(limit) + " when it was loaded", StatusCode::kUnavailable);
    case GuardedThread::Outcome::kBusy:
    case GuardedThread::Outcome::kNoThread:
      return plugin->fault("got no thread", StatusCode::kUnavailable);
  }
  if (!plugin->status) return plugin->status;
  return std::unique_ptr<PluginPolicy>(
      new PluginPolicy(plugin, fallback, std::move(listener), time_limit));
}

PluginPolicy::PluginPolicy(std::shared_ptr<Plugin> plugin, const PlacementPolicy& fallback,
                           Listener listener, std::chrono::milliseconds time_limit)
    : plugin_(std::move(plugin)),
      fallback_(fallback),
      listener_(std::move(listener)),
      time_limit_(time_limit) {}

PluginPolicy::~PluginPolicy() = default;

const char* PluginPolicy::name() const { return plugin_->name.c_str(); }

PlanOrder PluginPolicy::plan_order() const { return plugin_->order; }

bool PluginPolicy::is_trusted() const { return plugin_->strikes.load() < kStrikesMax; }

Placement PluginPolicy::solve(std::span<const TierView> tiers,
                              const PlacementRequest& request) const {
  if (!is_trusted() || tiers.size() > kTiersMax) return fallback_.solve(tiers, request);
  const auto call = std::make_shared<Call>();
  for (const TierView& tier : tiers) call->tiers[call->tier_count++] = to_plugin(tier);
  call->request = to_plugin(request);
  const auto job = [guard = plugin_->guard, solve = plugin_->solve, call] {
    call->failure = guard->solve(solve, call->tiers.data(), call->tier_count, &call->request,
                                 &call->answer, &call->thrown);
  };
  std::string thrown;
  switch (plugin_->thread.run(job, time_limit_, &thrown)) {
    case GuardedThread::Outcome::kDone:
      break;
    case GuardedThread::Outcome::kThrew:
      return fall_back(tiers, request, "threw " + thrown);
    case GuardedThread::Outcome::kLate:
      return fall_back(tiers, request, limit_text(time_limit_));
    case GuardedThread::Outcome::kBusy:
    case GuardedThread::Outcome::kNoThread:
      // Said when the earlier call was late.
      return fallback_.solve(tiers, request);
  }
  if (call->thrown.text[0] != '\0') {
    return fall_back(tiers, request, std::string("threw ") + call->thrown.text);
  }
  if (call->failure != 0) {
    return fall_back(tiers, request, "failed with " + std::to_string(call->failure));
  }
  Placement placement;
  const char* fault = from_plugin(call->answer, &placement);
  if (fault == nullptr) fault = fault_in(placement, request, tiers);
  if (fault != nullptr) return fall_back(tiers, request, std::string("answer ") + fault);
  plugin_->strikes.store(0);
  return placement;
}

Placement PluginPolicy::fall_back(std::span<const TierView> tiers, const PlacementRequest& request,
                                  const std::string& why) const {
  const bool was_last = plugin_->strikes.fetch_add(1) + 1 >= kStrikesMax;
  if (listener_) {
    listener_("placement policy '" + plugin_->name + "' (" + plugin_->path + ") " + why + "; '" +
              fallback_.name() + "' decides " +
              (was_last ? "from now on" : "in its place this time"));
  }
  return fallback_.solve(tiers, request);
}

}  // namespace cairn
