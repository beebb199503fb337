// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/sync_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
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
#include "cli/node/control_client.h"
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

// Where the child answers: its standard output may have lines of other libraries.
constexpr int kAnswers = 3;

// The child's word on one path.
struct Synced {
  uint32_t index = 0;
  int32_t error = 0;  // errno; 0: it is durable
};

struct SyncPath {
  std::string path;
  bool is_directory = false;  // for its names
  bool is_named = false;
  uint64_t bytes = 0;
};

std::vector<SyncPath> collect(const std::vector<std::string>& named) {
  std::set<std::string> names;
  for (const std::string& path : named) names.insert(canonical(path));
  std::vector<SyncPath> paths;
  std::set<std::string> known;
  const auto add = [&](const std::string& path, bool is_directory) {
    if (!known.insert(path).second) return;
    std::error_code error;
    const uintmax_t bytes = is_directory ? 0 : fs::file_size(path, error);
    paths.push_back({path, is_directory, names.count(path) != 0, error ? 0 : uint64_t{bytes}});
  };
  for_each_file(named, {.file = [&](const std::string& path) { add(path, false); },
                        .directory = [&](const std::string& path) { add(path, true); }});
  return paths;
}

// The directory that has all of them.
std::string common_directory(const std::vector<SyncPath>& paths) {
  const auto directory_of = [](const SyncPath& path) {
    return path.is_directory ? fs::path(path.path) : fs::path(path.path).parent_path();
  };
  CAIRN_CHECK(!paths.empty());
  fs::path common = directory_of(paths.front());
  for (const SyncPath& path : paths) {
    const fs::path other = directory_of(path);
    const auto parted = std::mismatch(common.begin(), common.end(), other.begin(), other.end());
    fs::path shared;
    for (auto part = common.begin(); part != parted.first; ++part) shared /= *part;
    common = shared;
  }
  return common.string();
}

// `cairn sync-here` in the node's environment, its input and its answers.
class SyncChild {
 public:
  SyncChild(const NodePaths& node, const std::string& directory) {
    int input[2];
    int output[2];
    if (::pipe2(input, O_CLOEXEC) != 0 || ::pipe2(output, O_CLOEXEC) != 0) fail(errno);
    input_ = input[1];
    output_ = output[0];
    start(node, directory, input[0], output[1]);
    ::close(input[0]);
    ::close(output[1]);
  }
  ~SyncChild() {
    ::close(output_);
    while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  SyncChild(const SyncChild&) = delete;
  SyncChild& operator=(const SyncChild&) = delete;

  // Once. The child reads all of them before it answers.
  void tell(const std::vector<SyncPath>& paths) const {
    for (const SyncPath& path : paths)
      if (!write_fully(input_, {path.path.c_str(), path.path.size() + 1})) break;
    ::close(input_);
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

  void start(const NodePaths& node, const std::string& directory, int input, int output) {
    ProgramEnvironment run;
    run.preload_library = preload_library_path();
    run.client_socket = node.client_socket;
    run.buffer_directories = {directory};
    run.run_id = fmt::format("{}", ::getpid());
    const std::vector<std::string> environment = program_environment(run);
    const std::vector<std::string> words = {"cairn", kSyncHere};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    // The answers first: they may be the input's number.
    const int answers = ::fcntl(output, F_DUPFD_CLOEXEC, kAnswers + 1);
    const int paths = ::fcntl(input, F_DUPFD_CLOEXEC, kAnswers + 1);
    if (answers < 0 || paths < 0) fail(errno);
    posix_spawn_file_actions_adddup2(&actions, paths, 0);
    posix_spawn_file_actions_adddup2(&actions, answers, kAnswers);
    const int error = ::posix_spawn(&process_, "/proc/self/exe", &actions, nullptr,
                                    exec_words(words).data(), exec_words(environment).data());
    posix_spawn_file_actions_destroy(&actions);
    ::close(answers);
    ::close(paths);
    if (error != 0) fail(error);
  }

  pid_t process_ = -1;
  int input_ = -1;
  int output_ = -1;
};

// Says what is not durable. Returns: whether everything is.
bool follow(const SyncChild& child, const std::vector<SyncPath>& paths) {
  DrainView view("making durable");
  DrainProgress left;
  for (const SyncPath& path : paths) left.remaining_bytes += path.bytes;
  left.remaining_files = paths.size();
  std::vector<bool> is_done(paths.size());
  bool is_all = true;
  while (const auto synced = child.next()) {
    CAIRN_CHECK(synced->index < paths.size() && !is_done[synced->index]);
    is_done[synced->index] = true;
    const SyncPath& path = paths[synced->index];
    // It was found in a directory, and somebody has removed it since.
    const bool is_gone = synced->error == ENOENT && !path.is_named;
    if (synced->error != 0 && !is_gone) {
      view.clear();
      say(fmt::format("{}: not durable: {}", printable(path.path), std::strerror(synced->error)));
      is_all = false;
    }
    left.remaining_bytes -= path.bytes;
    --left.remaining_files;
    left.file = printable(path.path);
    view.update(left);
  }
  view.clear();
  if (left.remaining_files == 0) return is_all;
  const auto first = std::find(is_done.begin(), is_done.end(), false) - is_done.begin();
  say(fmt::format("{}: not durable: cairn sync ended early, {} paths are left",
                  printable(paths[static_cast<size_t>(first)].path), left.remaining_files));
  return false;
}

// Returns: 0 or errno.
int sync_path(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return errno;
  // A writer that waits for the reader of a pipe would take an open for that reader.
  if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) return EINVAL;
  constexpr int kFlags = O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  int file = ::open(path.c_str(), O_RDONLY | kFlags);
  const int refused = errno;
  // A user may have the right to write alone.
  if (file < 0 && refused == EACCES) file = ::open(path.c_str(), O_WRONLY | kFlags);
  if (file < 0) return refused;
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
  const std::vector<SyncPath> paths = collect(named_paths(files));
  // Missing answers show that the child has ended early.
  ::signal(SIGPIPE, SIG_IGN);
  const double started = monotonic_seconds();
  const NodePaths node = select_node(files.node);
  // Its service answers, or the failure says why not.
  (void)ControlClient(node).request({{"command", "status"}});
  const SyncChild child(node, common_directory(paths));
  child.tell(paths);
  if (!follow(child, paths)) return kExitNotStored;
  const auto is_file = [](const SyncPath& path) { return !path.is_directory; };
  const auto count = std::count_if(paths.begin(), paths.end(), is_file);
  say(fmt::format("{} {} durable, {}", count, count == 1 ? "file is" : "files are",
                  format_duration(monotonic_seconds() - started)));
  return kExitOk;
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
      if (!write_fully(kAnswers, {reinterpret_cast<const char*>(&synced), sizeof synced})) return;
    }
  };
  std::array<std::thread, kThreads> threads;
  for (std::thread& thread : threads) thread = std::thread(work);
  for (std::thread& thread : threads) thread.join();
  return kExitOk;
}

}  // namespace cairn::cli
