// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/sync_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/size_text.h"
#include "cli/commands/file_selection.h"
#include "cli/launch/program_start.h"
#include "cli/node/drain_view.h"
#include "cli/node/run_directory.h"
#include "cli/terminal/failure.h"
#include "cli/terminal/output.h"
#include "cli/terminal/paths.h"

namespace cairn::cli {
namespace {

namespace fs = std::filesystem;

// Files that are synced at the same time share the flushes of the device (group commit).
constexpr unsigned kThreads = 8;

// What the child says of one path.
struct Synced {
  uint32_t index = 0;
  int32_t error = 0;  // errno; 0: it is durable
};

struct SyncPaths {
  std::vector<std::string> all;       // files, and directories for their names
  std::vector<bool> is_directory;     // of each of them
  std::set<std::string> directories;  // that hold them: what the child is to buffer
};

SyncPaths collect(const FileSelection& files) {
  SyncPaths paths;
  const std::vector<std::string> named = named_paths(files);
  for (const std::string& path : named) {
    const fs::path whole = canonical(path);
    paths.directories.insert(fs::is_directory(whole) ? whole.string()
                                                     : whole.parent_path().string());
  }
  const auto add = [&paths](const std::string& path, bool is_directory) {
    paths.all.push_back(path);
    paths.is_directory.push_back(is_directory);
  };
  for_each_file(
      named, [&](const std::string& file) { add(file, false); },
      [&](const std::string& directory) { add(directory, true); });
  return paths;
}

// `cairn sync-here` in the node's environment, its input and its output.
class SyncChild {
 public:
  SyncChild(const NodePaths& node, const SyncPaths& paths) {
    int input[2];
    int output[2];
    if (::pipe2(input, O_CLOEXEC) != 0 || ::pipe2(output, O_CLOEXEC) != 0) fail(errno);
    input_ = input[1];
    output_ = output[0];
    start(node, paths, input[0], output[1]);
    ::close(input[0]);
    ::close(output[1]);
  }
  ~SyncChild() { end(); }
  SyncChild(const SyncChild&) = delete;
  SyncChild& operator=(const SyncChild&) = delete;

  // In a thread of its own: the child answers before it has read everything.
  void tell(const std::vector<std::string>& paths) {
    writer_ = std::thread([this, &paths] {
      for (const std::string& path : paths)
        if (!write_fully(input_, {path.c_str(), path.size() + 1})) break;
      ::close(input_);
    });
  }

  std::optional<Synced> next() const {
    Synced synced;
    size_t taken = 0;
    while (taken < sizeof synced) {
      const ssize_t got =
          ::read(output_, reinterpret_cast<char*>(&synced) + taken, sizeof synced - taken);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return std::nullopt;
      taken += static_cast<size_t>(got);
    }
    return synced;
  }

 private:
  [[noreturn]] static void fail(int error) {
    throw Failure(fmt::format("cairn sync cannot start: {}", std::strerror(error)), "");
  }

  void start(const NodePaths& node, const SyncPaths& paths, int input, int output) {
    ProgramEnvironment run;
    run.preload_library = preload_library_path();
    run.client_socket = node.client_socket;
    run.buffer_directories.assign(paths.directories.begin(), paths.directories.end());
    run.run_id = fmt::format("{}", ::getpid());
    const std::vector<std::string> environment = program_environment(run);
    const std::vector<std::string> words = {"cairn", kSyncHere};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input, 0);
    posix_spawn_file_actions_adddup2(&actions, output, 1);
    const int error = ::posix_spawn(&process_, "/proc/self/exe", &actions, nullptr,
                                    exec_words(words).data(), exec_words(environment).data());
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) fail(error);
  }

  void end() {
    // The writer sees a broken pipe if the child has ended early.
    ::close(output_);
    if (writer_.joinable()) writer_.join();
    while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }

  pid_t process_ = -1;
  int input_ = -1;
  int output_ = -1;
  std::thread writer_;
};

// Returns: how many could not be made durable; each has been named.
size_t follow(const SyncChild& child, const SyncPaths& paths) {
  DrainView view("making durable");
  const double started = monotonic_seconds();
  double answered = started;
  std::vector<bool> is_done(paths.all.size());
  size_t done = 0;
  size_t failed = 0;
  while (const auto synced = child.next()) {
    CAIRN_CHECK(synced->index < paths.all.size() && !is_done[synced->index]);
    is_done[synced->index] = true;
    ++done;
    const std::string& path = paths.all[synced->index];
    if (synced->error != 0) {
      view.clear();
      say(fmt::format("{}: not durable: {}", printable(path), std::strerror(synced->error)));
      ++failed;
    }
    DrainProgress shown;
    shown.remaining_files = paths.all.size() - done;
    shown.idle_seconds = monotonic_seconds() - answered;
    shown.file = printable(path);
    view.update(shown);
    answered = monotonic_seconds();
  }
  view.clear();
  if (done < paths.all.size()) {
    const size_t first =
        static_cast<size_t>(std::find(is_done.begin(), is_done.end(), false) - is_done.begin());
    say(fmt::format("{}: not durable: cairn sync ended early, {} paths are left",
                    printable(paths.all[first]), paths.all.size() - done));
  }
  return failed + paths.all.size() - done;
}

// Returns: 0 or errno.
int sync_path(const std::string& path) {
  constexpr int kFlags = O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  int file = ::open(path.c_str(), O_RDONLY | kFlags);
  // A user may have the right to write alone.
  if (file < 0 && errno == EACCES) file = ::open(path.c_str(), O_WRONLY | kFlags);
  if (file < 0) return errno;
  const int error = ::fsync(file) == 0 ? 0 : errno;
  ::close(file);
  return error;
}

}  // namespace

int command_sync(const Arguments& arguments) {
  CLI::App app(
      "Makes files durable that other programs have written, each at its level: in the durable "
      "tier's log, or in the store.",
      "cairn sync");
  FileSelection files;
  app.add_option("paths", files.paths, "Files or directories")->type_name("PATH...");
  add_files(app, files);
  app.footer(
      "Exit status: 74 when a file is not durable.\n\n"
      "Example:\n  cairn sync --node job results/");
  parse(app, arguments);
  const SyncPaths paths = collect(files);
  // Missing answers show that the child has ended early.
  ::signal(SIGPIPE, SIG_IGN);
  const double started = monotonic_seconds();
  SyncChild child(select_node(files.node), paths);
  child.tell(paths.all);
  const size_t failed = follow(child, paths);
  const auto count = std::count(paths.is_directory.begin(), paths.is_directory.end(), false);
  if (failed == 0)
    say(fmt::format("{} {} durable, {}", count, count == 1 ? "file is" : "files are",
                    format_duration(monotonic_seconds() - started)));
  return failed == 0 ? kExitOk : kExitNotStored;
}

int command_sync_here(const Arguments&) {
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  std::vector<std::string> paths;
  for (size_t at = 0; at < text.size(); at += paths.back().size() + 1)
    paths.emplace_back(text.c_str() + at);
  std::atomic<uint32_t> next{0};
  const auto work = [&paths, &next] {
    for (uint32_t index = next++; index < paths.size(); index = next++) {
      const Synced synced{index, sync_path(paths[index])};
      // Whole, as all writes of a pipe up to PIPE_BUF are.
      if (!write_fully(1, {reinterpret_cast<const char*>(&synced), sizeof synced})) return;
    }
  };
  std::array<std::thread, kThreads> threads;
  for (std::thread& thread : threads) thread = std::thread(work);
  for (std::thread& thread : threads) thread.join();
  return kExitOk;
}

}  // namespace cairn::cli
