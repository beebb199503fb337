// SPDX-License-Identifier: Apache-2.0
// A shared object that brings a plugin of some kind: found, loaded, asked what it is, and judged by
// what all kinds have in common. All of its code runs on a thread of its own (guarded_thread.h).
//
//   struct Thing : PluginObject { ... Status read(); };
//   const auto thing = std::make_shared<Thing>("thing", path);
//   CAIRN_RETURN_IF_ERROR(thing->load(limit, [thing] { return thing->read(); }));
//
// where read() calls description(kind) and takes from it what it needs.
//
// Thread safety: written while it is loaded, and constant then, but for the thread. Ownership: it
// is shared with the jobs of its thread, which may be late. The object stays loaded until the
// process ends: a thread may be in it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "service/plugins/guarded_thread.h"
#include "service/plugins/plugin_guard.h"

namespace cairn {

// What tells one kind of plugins from another.
template <typename Description>
struct PluginKind {
  const char* entry_point;
  std::uint32_t abi_version;
  const Description* (*PluginGuard::*describe)(PluginGuard::Entry<Description> entry,
                                               PluginGuard::Thrown* thrown);
};

class PluginObject {
 public:
  // `noun`: what to call it in messages, a literal.
  PluginObject(const char* noun, const std::string& path);

  const std::string& path() const { return path_; }
  const std::string& name() const { return name_; }
  const PluginGuard& guard() const { return *guard_; }
  GuardedThread& thread() { return thread_; }
  // "'name' (path)" with the noun before it, for the log.
  std::string title() const;

  // Runs `read`, which owns this object, on the object's thread. Errors: kNotFound (no such file),
  // kUnavailable (does not return in time, no thread), or what `read` returns. They name the path.
  Status load(std::chrono::milliseconds limit, std::function<Status()> read);

  // The object's description of itself, if it has the wanted version and a valid name, which is the
  // object's name from then on. For `read`. Errors: kInvalid (no shared object, no entry point,
  // no description, no name, it threw), kIncompatible (another version of the interface),
  // kUnavailable (the guard is missing).
  template <typename Description>
  Result<const Description*> description(const PluginKind<Description>& kind) {
    const auto entry = open(kind.entry_point);
    if (!entry) return entry.status();
    PluginGuard::Thrown thrown;
    const Description* found = (guard_->*kind.describe)(
        reinterpret_cast<PluginGuard::Entry<Description>>(*entry), &thrown);
    if (thrown.text[0] != '\0') return thrown_when_loaded(thrown.text);
    if (found == nullptr) return fault("gives no description of itself");
    CAIRN_RETURN_IF_ERROR(take(found->abi_version, kind.abi_version, found->name));
    return found;
  }

  Status fault(const std::string& what, StatusCode code = StatusCode::kInvalid) const;
  static std::string late_text(std::chrono::milliseconds limit);

 private:
  Result<void*> open(const char* entry_point);
  Status take(std::uint32_t version, std::uint32_t version_wanted, const char* name);
  Status thrown_when_loaded(const std::string& thrown) const;

  const std::string noun_;
  const std::string path_;
  std::string name_;
  const PluginGuard* guard_ = nullptr;
  GuardedThread thread_;
};

}  // namespace cairn
