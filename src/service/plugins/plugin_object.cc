// SPDX-License-Identifier: Apache-2.0
#include "service/plugins/plugin_object.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace cairn {
namespace {

constexpr std::size_t kNameBytesMax = 63;

bool is_name(const char* name) {
  if (name == nullptr) return false;
  const std::size_t length = strnlen(name, kNameBytesMax + 1);
  constexpr const char* kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
  return length > 0 && length <= kNameBytesMax && strspn(name, kAllowed) == length;
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

// Without a slash the dynamic linker would search its own folders.
PluginObject::PluginObject(const char* noun, const std::string& path)
    : noun_(noun), path_(path.find('/') == std::string::npos ? "./" + path : path) {}

std::string PluginObject::title() const { return noun_ + " '" + name_ + "' (" + path_ + ")"; }

Status PluginObject::fault(const std::string& what, StatusCode code) const {
  return {code, noun_ + " " + path_ + " " + what};
}

Status PluginObject::thrown_when_loaded(const std::string& thrown) const {
  return fault("threw " + thrown + " when it was loaded");
}

std::string PluginObject::late_text(std::chrono::milliseconds limit) {
  return "did not return within " + std::to_string(limit.count()) + " ms";
}

Status PluginObject::load(std::chrono::milliseconds limit, std::function<Status()> read) {
  struct stat status;
  if (::stat(path_.c_str(), &status) != 0) {
    return fault(std::string("cannot be read: ") + std::strerror(errno), StatusCode::kNotFound);
  }
  const auto outcome = std::make_shared<Status>();
  std::string thrown;
  switch (thread_.run([outcome, job = std::move(read)] { *outcome = job(); }, limit, &thrown)) {
    case GuardedThread::Outcome::kDone:
      return *outcome;
    case GuardedThread::Outcome::kThrew:
      return thrown_when_loaded(thrown);
    case GuardedThread::Outcome::kLate:
      return fault(late_text(limit) + " when it was loaded", StatusCode::kUnavailable);
    case GuardedThread::Outcome::kBusy:
    case GuardedThread::Outcome::kNoThread:
      break;
  }
  return fault("got no thread", StatusCode::kUnavailable);
}

// The object is never unloaded: a thread of it may still run.
Result<void*> PluginObject::open(const char* entry_point) {
  const auto loaded = load_guard();
  if (!loaded) return loaded.status();
  guard_ = loaded.value();
  void* object = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (object == nullptr) return fault("is not loaded: " + linker_error());
  void* entry = dlsym(object, entry_point);
  if (entry == nullptr) {
    return fault(std::string("defines no ") + entry_point +
                 "(): it is none, or of another version");
  }
  return entry;
}

Status PluginObject::take(std::uint32_t version, std::uint32_t version_wanted, const char* name) {
  if (version != version_wanted) {
    return fault("is made for version " + std::to_string(version) +
                     " of the interface; this is version " + std::to_string(version_wanted),
                 StatusCode::kIncompatible);
  }
  if (!is_name(name)) return fault("has no valid name");
  name_ = name;
  return Status::ok();
}

}  // namespace cairn
