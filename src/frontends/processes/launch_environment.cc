// SPDX-License-Identifier: Apache-2.0
#include "frontends/processes/launch_environment.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cstring>

#include "base/system_call.h"
#include "base/user_copy.h"
#include "frontends/processes/exec_table.h"

namespace cairn {
namespace {

constexpr const char* kVariables[] = {"CAIRN_SOCKET", "CAIRN_BUFFER",   "CAIRN_EXCLUDE",
                                      "CAIRN_RUN",    "CAIRN_HANDLING", "CAIRN_ARRAYS",
                                      "CAIRN_MPI"};
constexpr unsigned kVariableCount = sizeof kVariables / sizeof kVariables[0];
constexpr const char* kPreload = "LD_PRELOAD";
// The runtime of AddressSanitizer refuses to start behind a preloaded library, though it works
// there: its functions find libc's, and ours find them.
constexpr const char* kSanitizer = "ASAN_OPTIONS";
constexpr const char* kAnyOrder = "verify_asan_link_order=0";
// What does not fit is passed on only as long as programs keep their environment.
constexpr std::size_t kKeptBytes = 20 * 1024;
constexpr std::size_t kLibraryBytesMax = 4096;
static_assert(kLibraryBytesMax < kKeptBytes);

// The library's path and "NAME=value" texts, copied because programs write over the memory of their
// first environment (setproctitle). The short fields stand before the text, because each page that
// a start touches costs 1.2 us.
struct Kept {
  std::size_t size;
  char* variables[kVariableCount];
  const char* library;
  char text[kKeptBytes];
};
constinit Kept kept{};

const char* library_path() { return kept.library == nullptr ? "" : kept.library; }

// The length of `name` when `entry` is "name=...", else 0.
std::size_t name_length(const char* entry, const char* name) {
  const std::size_t length = std::strlen(name);
  return std::strncmp(entry, name, length) == 0 && entry[length] == '=' ? length : 0;
}

// One of the paths in an LD_PRELOAD value; they are separated by colons or spaces.
std::size_t path_length(const char* text) { return std::strcspn(text, ": "); }

bool is_library(const char* text, std::size_t length) {
  return length == std::strlen(library_path()) && std::strncmp(text, library_path(), length) == 0;
}

// Writes "LD_PRELOAD=" with our library first, or without it. Returns the end of the text, past the
// NUL.
char* write_preload(char* out, const char* others, bool without_library) {
  std::strcpy(out, "LD_PRELOAD=");
  out += std::strlen(out);
  bool is_first = true;
  if (!without_library) {
    std::strcpy(out, library_path());
    out += std::strlen(out);
    is_first = false;
  }
  for (const char* next = others; next != nullptr && *next != '\0';) {
    const std::size_t length = path_length(next);
    if (length > 0 && !is_library(next, length)) {
      if (!is_first) *out++ = ':';
      std::memcpy(out, next, length);
      out += length;
      is_first = false;
    }
    next += length;
    if (*next != '\0') ++next;
  }
  *out++ = '\0';
  return out;
}

// Writes "ASAN_OPTIONS=" with what the environment has of it, which is obeyed before ours. Returns
// the end of the text, past the NUL.
char* write_sanitizer(char* out, const char* given) {
  std::strcpy(out, kSanitizer);
  std::strcat(out, "=");
  std::strcat(out, kAnyOrder);
  if (given != nullptr && *given != '\0' && std::strstr(given, kAnyOrder) == nullptr) {
    std::strcat(out, ":");
    std::strcat(out, given);
  } else if (given != nullptr && *given != '\0') {
    std::strcpy(out + std::strlen(kSanitizer) + 1, given);
  }
  return out + std::strlen(out) + 1;
}

}  // namespace

const char* find_variable(char* const* environment, const char* name) {
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    if (const std::size_t length = name_length(*environment, name); length != 0)
      return *environment + length + 1;
  }
  return nullptr;
}

void remove_variable(char** environment, const char* name) {
  if (environment == nullptr) return;
  char** out = environment;
  for (char** in = environment; *in != nullptr; ++in) {
    if (name_length(*in, name) == 0) *out++ = *in;
  }
  *out = nullptr;
}

void LaunchEnvironment::remember(char* const* environment, const char* library) {
  const std::size_t length = library == nullptr ? 0 : std::strlen(library);
  if (length == 0 || length >= kLibraryBytesMax || length >= kKeptBytes - kept.size) return;
  kept.library = std::strcpy(kept.text + kept.size, library);
  kept.size += length + 1;
  for (unsigned index = 0; index < kVariableCount; ++index) {
    const char* value = find_variable(environment, kVariables[index]);
    if (value == nullptr) continue;
    const std::size_t size = std::strlen(kVariables[index]) + 1 + std::strlen(value) + 1;
    if (size > kKeptBytes - kept.size) continue;
    kept.variables[index] = kept.text + kept.size;
    std::strcpy(kept.variables[index], kVariables[index]);
    std::strcat(kept.variables[index], "=");
    std::strcat(kept.variables[index], value);
    kept.size += size;
  }
}

bool LaunchEnvironment::is_member() { return kept.variables[0] != nullptr; }

bool LaunchEnvironment::is_reachable() {
  struct ::statx status;
  return sys::statx(AT_FDCWD, library_path(), 0, STATX_TYPE, &status) == 0 &&
         S_ISREG(status.stx_mode);
}

bool is_readable_text(const char* text) {
  constexpr std::size_t kPiece = 64;  // never over the end of a page
  for (;;) {
    char piece[kPiece];
    const std::size_t length = kPiece - reinterpret_cast<std::uintptr_t>(text) % kPiece;
    if (user_copy(piece, text, length) != 0) return false;
    if (std::memchr(piece, '\0', length) != nullptr) return true;
    text += length;
  }
}

bool LaunchEnvironment::is_readable(char* const* environment) {
  for (char* const* entry = environment; entry != nullptr; ++entry) {
    char* text = nullptr;
    if (!get_user(&text, entry)) return false;
    if (text == nullptr) return true;
    if (!is_readable_text(text)) return false;
  }
  return true;
}

bool LaunchEnvironment::leaves_run(char* const* environment) {
  const char* bypass = find_variable(environment, "CAIRN_BYPASS");
  if (bypass != nullptr && *bypass != '\0') return true;
  const char* socket = find_variable(environment, kVariables[0]);
  return socket != nullptr && kept.variables[0] != nullptr &&
         std::strcmp(socket, std::strchr(kept.variables[0], '=') + 1) != 0;
}

std::size_t LaunchEnvironment::build_bytes(char* const* environment) {
  std::size_t count = 0;
  for (char* const* entry = environment; entry != nullptr && *entry != nullptr; ++entry) ++count;
  const char* preload = find_variable(environment, kPreload);
  const char* sanitizer = find_variable(environment, kSanitizer);
  const std::size_t text = std::strlen(kSanitizer) + std::strlen(kAnyOrder) + 3 +
                           (sanitizer != nullptr ? std::strlen(sanitizer) : 0) +
                           sizeof "LD_PRELOAD=" + std::strlen(library_path()) + 2 +
                           (preload != nullptr ? std::strlen(preload) : 0) +
                           sizeof kExecTableVariable + 2;
  return (count + kVariableCount + 4) * sizeof(char*) + text + alignof(char*);
}

char** LaunchEnvironment::build(char* const* environment, const char* table, bool without_library,
                                void* scratch) {
  auto** const built = static_cast<char**>(scratch);
  std::size_t count = 0;
  bool has[kVariableCount] = {};
  const bool leaves = leaves_run(environment);
  const bool loads = !leaves && !without_library;
  const char* preload = nullptr;
  const char* sanitizer = nullptr;
  for (char* const* entry = environment; entry != nullptr && *entry != nullptr; ++entry) {
    if (name_length(*entry, kExecTableVariable) != 0) continue;
    if (const std::size_t length = name_length(*entry, kPreload); length != 0 && !leaves) {
      preload = *entry + length + 1;
      continue;
    }
    if (const std::size_t length = name_length(*entry, kSanitizer); length != 0 && loads) {
      sanitizer = *entry + length + 1;
      continue;
    }
    for (unsigned index = 0; index < kVariableCount; ++index) {
      if (name_length(*entry, kVariables[index]) != 0) has[index] = true;
    }
    built[count++] = *entry;
  }
  for (unsigned index = 0; index < kVariableCount && !leaves; ++index) {
    // The settings of one run belong together: with a socket of its own an environment is complete.
    if (!has[index] && !has[0] && kept.variables[index] != nullptr)
      built[count++] = kept.variables[index];
  }
  std::size_t strings = count + 4;
  char* out = reinterpret_cast<char*>(built + strings);
  if (!leaves && (!without_library || preload != nullptr)) {
    built[count++] = out;
    out = write_preload(out, preload, without_library);
  }
  if (loads) {
    built[count++] = out;
    out = write_sanitizer(out, sanitizer);
  }
  if (!leaves && table != nullptr) {
    built[count++] = out;
    std::strcpy(out, kExecTableVariable);
    std::strcat(out, "=");
    std::strcat(out, table);
  }
  built[count] = nullptr;
  return built;
}

}  // namespace cairn
