// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/node_launcher.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/test_capacities.h"
#include "cli/configuration/configuration_text.h"
#include "cli/launch/program_start.h"
#include "cli/node/control_client.h"
#include "cli/node/control_socket.h"
#include "cli/terminal/failure.h"
#include "cli/terminal/output.h"
#include "service/node/start_notice.h"

extern char** environ;

namespace cairn::cli {
namespace {

// A service that allocates hundreds of gigabytes of huge pages needs its time; one that hangs must
// not take the job's whole allocation with it.
constexpr int kReadyTimeoutMilliseconds = 120'000;
constexpr unsigned kPrivateNameSuffixMax = 100;
// In the service, the ready pipe has this number and everything above it is closed.
constexpr int kReadyDescriptor = 3;

constexpr std::array<const char*, 12> kNodeFiles = {"client.sock",
                                                    "client.sock.memory",
                                                    "client.sock.memory.new",
                                                    "control.sock",
                                                    "node.pid",
                                                    "node.log",
                                                    "config.yaml",
                                                    "ready",
                                                    "stored",
                                                    "rescued",
                                                    "old-log",
                                                    "durable-tier"};

// They mean nothing without their node.
constexpr std::array<const char*, 3> kNodeFolders = {"scratch", "records", "heat"};

// Removes the files and folders of a node directory, and the directory; nothing else in it.
void remove_node_directory(const NodePaths& paths) {
  for (const char* name : kNodeFiles) ::unlink((paths.directory + "/" + name).c_str());
  std::error_code ignored;
  for (const char* name : kNodeFolders)
    std::filesystem::remove_all(paths.directory + "/" + name, ignored);
  ::rmdir(paths.directory.c_str());
}

// What a rescue has saved is the user's, and the only copy. It moves beside the node directory.
void move_rescues_away(const NodePaths& paths) {
  const std::string left = paths.directory + "/rescue";
  if (::access(left.c_str(), F_OK) != 0) return;
  std::string place = paths.directory + ".rescue";
  for (unsigned suffix = 2; suffix < kPrivateNameSuffixMax; ++suffix) {
    if (::renameat2(AT_FDCWD, left.c_str(), AT_FDCWD, place.c_str(), RENAME_NOREPLACE) == 0) {
      say(
          fmt::format("what a rescue of the former node {} has saved is in {} now: `cairn rescue` "
                      "with a directory there puts it in its place",
                      paths.name, printable(place)));
      return;
    }
    if (errno != EEXIST) break;
    place = fmt::format("{}.rescue-{}", paths.directory, suffix);
  }
  throw Failure(fmt::format("{} has data that a rescue has saved, and cannot be moved to {}: {}",
                            printable(left), printable(place), std::strerror(errno)),
                "move it away, or choose another name for the node");
}

// The first name in a node directory that no node gives; empty: there is none.
std::string foreign_name(const NodePaths& paths) {
  const auto is_one_of = [](const auto& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  std::error_code error;
  for (auto entry = std::filesystem::directory_iterator(paths.directory, error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!is_one_of(kNodeFiles, name) && !is_one_of(kNodeFolders, name)) return name;
  }
  return "";
}

// The service is gone; whatever it held in memory went with it.
void replace_node_directory(const NodePaths& paths) {
  move_rescues_away(paths);
  if (const std::string name = foreign_name(paths); !name.empty()) {
    throw Failure(
        fmt::format("the directory of the former node {} has {} in it, which is no node's",
                    paths.name, printable(paths.directory + "/" + name)),
        "move it away, or choose another name for the node");
  }
  remove_node_directory(paths);
}

// Two `cairn up` of the same name at the same time: one creates the directory while the other still
// decides whether the directory is a leftover. The lock is on the run root itself, so no file
// stays.
class RunRootLock {
 public:
  explicit RunRootLock(const std::string& run_root)
      : descriptor_(::open(run_root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    while (descriptor_ >= 0 && ::flock(descriptor_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  ~RunRootLock() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  RunRootLock(const RunRootLock&) = delete;
  RunRootLock& operator=(const RunRootLock&) = delete;

 private:
  int descriptor_;
};

void create_node_directory(const NodePaths& paths) {
  if (::mkdir(paths.directory.c_str(), 0700) == 0) return;
  if (errno == EEXIST) {
    if (node_answers(paths.control_socket)) {
      throw Failure(
          fmt::format("a node named {} is already running", paths.name),
          fmt::format("use it with `cairn run --node {0} -- PROGRAM`, stop it with `cairn "
                      "down --node {0}`, or choose another name",
                      paths.name));
    }
    replace_node_directory(paths);
    if (::mkdir(paths.directory.c_str(), 0700) == 0) return;
  }
  const int error = errno;
  throw Failure(
      fmt::format("cannot create the node directory {}: {}", paths.directory, std::strerror(error)),
      "set CAIRN_RUN_ROOT to a directory of your own on a local file system");
}

void write_new(const std::string& path, const std::string& text) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  const bool good = descriptor >= 0 && write_fully(descriptor, text);
  const int error = errno;
  if (descriptor >= 0) ::close(descriptor);
  if (!good) {
    throw Failure(fmt::format("cannot write {}: {}", path, std::strerror(error)),
                  "free some space there, or set CAIRN_RUN_ROOT to another directory");
  }
}

// A run that must do without the node, and has no parser, reads where its durable tier is.
void write_config(const NodePaths& paths, const Configuration& configuration) {
  write_new(paths.config_file, configuration_yaml(configuration));
  const NodeConfig& node = configuration.node;
  if (const size_t tier = durable_tier_of(node); tier < node.tiers.size())
    write_new(paths.directory + "/durable-tier", node.tiers[tier].directory + "\n");
}

// The service must not be a client of a node, and must not take options of the environment over
// those of its file. Where it lives was decided by the launcher.
std::vector<std::string> service_environment(const NodePaths& paths) {
  std::vector<std::string> kept;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const bool is_for_tests =
        text.rfind(kTestCapacitiesVariable, 0) == 0 || text.rfind("CAIRN_CRASH_PAGE=", 0) == 0;
    const bool is_ours = text.rfind("LD_PRELOAD=", 0) == 0 || text.rfind("CAIRN_", 0) == 0;
    if (!is_ours || is_for_tests) kept.emplace_back(text);
  }
  kept.push_back("CAIRN_RUN_ROOT=" + paths.run_root);
  return kept;
}

struct ServiceStart {
  std::string executable;
  std::vector<std::string> arguments;
  std::vector<std::string> environment;
  int log_descriptor = -1;
  int ready_write = -1;
};

[[noreturn]] void become_service(const ServiceStart& start, char** arguments, char** environment) {
  ::setsid();
  // The service outlives the terminal, the directory and the limits of the process that starts it.
  const int null_device = ::open("/dev/null", O_RDWR);
  const int ready = ::fcntl(start.ready_write, F_DUPFD, 10);
  const int log = ::fcntl(start.log_descriptor, F_DUPFD, 10);
  ::dup2(null_device, STDIN_FILENO);
  ::dup2(log, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  ::dup2(ready, kReadyDescriptor);
  ::close_range(kReadyDescriptor + 1, UINT_MAX, 0);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  ::umask(077);
  if (::chdir("/") != 0) ::_exit(kExitInternal);
  ::execve(start.executable.c_str(), arguments, environment);
  static constexpr std::string_view kText = "the service could not be executed\n";
  (void)!::write(kReadyDescriptor, kText.data(), kText.size());
  ::_exit(kExitInternal);
}

pid_t start_service(const ServiceStart& start) {
  std::vector<char*> arguments = exec_words(start.arguments);
  std::vector<char*> environment = exec_words(start.environment);
  const pid_t child = ::fork();
  if (child == 0) become_service(start, arguments.data(), environment.data());
  return child;
}

// Says the notices in front of `text`, and takes them away. Returns: whether another line follows.
bool say_notices(std::string* text) {
  for (size_t end = text->find('\n'); end != std::string::npos; end = text->find('\n')) {
    if (!text->starts_with(node::kNoticeMark)) return true;
    say(printable(text->substr(node::kNoticeMark.size(), end - node::kNoticeMark.size())));
    text->erase(0, end + 1);
  }
  return false;
}

// The line with which the service's start ends. Returns: empty on end of file or after the timeout.
std::string read_ready_line(int descriptor) {
  std::string text;
  const double deadline = monotonic_seconds() + kReadyTimeoutMilliseconds * 1e-3;
  while (!say_notices(&text)) {
    pollfd ready{.fd = descriptor, .events = POLLIN, .revents = 0};
    const auto left = static_cast<int>((deadline - monotonic_seconds()) * 1000);
    const int count = left > 0 ? ::poll(&ready, 1, left) : 0;
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return "timeout\n";
    std::array<char, 1024> buffer{};
    const ssize_t size = ::read(descriptor, buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    text.append(buffer.data(), static_cast<size_t>(size));
  }
  // The successor of a service that has died at this point says the same again.
  constexpr std::string_view kReady = "ready\n";
  return text.starts_with(kReady) ? std::string(kReady) : text;
}

// For a service that is not a child of this process. A container whose first process reaps nobody
// keeps it as a zombie for ever, which is as good as gone.
bool has_ended(pid_t service) {
  if (service <= 0 || ::kill(service, 0) != 0) return true;
  std::ifstream stream(fmt::format("/proc/{}/stat", service));
  std::string text;
  std::getline(stream, text);
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= text.size()) return false;
  return text[name_end + 2] == 'Z' || text[name_end + 2] == 'X';
}

std::string last_log_line(const NodePaths& paths) {
  std::ifstream stream(paths.log_file);
  std::string line;
  std::string last;
  while (std::getline(stream, line)) {
    if (!line.empty()) last = line;
  }
  return last;
}

[[noreturn]] void fail_to_start(const LaunchedNode& node, std::string text) {
  ::kill(-node.service, SIGKILL);  // the keeper, which leads a group of its own, and the service
  ::waitpid(node.service, nullptr, 0);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  if (text == "timeout") {
    text = fmt::format("it was not ready after {} s", kReadyTimeoutMilliseconds / 1000);
  }
  if (text.empty()) text = last_log_line(node.paths);
  if (text.empty()) text = "it ended without a reason";
  remove_node_directory(node.paths);
  throw Failure(fmt::format("the service of node {} did not start: {}", node.paths.name, text),
                "`cairn config show` prints the configuration in force, `cairn doctor` checks the "
                "machine");
}

// `*status` (may be null) gets what waitpid() says of a child.
bool ends_within(const NodePaths& paths, pid_t service, double seconds, int* status) {
  const double deadline = monotonic_seconds() + seconds;
  while (true) {
    const pid_t waited = service > 0 ? ::waitpid(service, status, WNOHANG) : -1;
    const bool ended = waited == service || (waited < 0 && has_ended(service));
    if (ended && !node_answers(paths.control_socket)) return true;
    if (monotonic_seconds() > deadline) return false;
    const timespec pause{.tv_sec = 0, .tv_nsec = 2'000'000};
    ::nanosleep(&pause, nullptr);
  }
}

// Without the time.
std::string last_error_of(const std::string& log_file) {
  constexpr std::string_view kError = " error: ";
  std::ifstream stream(log_file);
  std::string last;
  for (std::string line; std::getline(stream, line);) {
    const std::size_t at = line.find(kError);
    if (at != std::string::npos) last = line.substr(at + kError.size());
  }
  return last;
}

}  // namespace

std::string private_node_name() {
  const std::string root = run_root_path();
  std::string name = fmt::format("run-{}", ::getpid());
  for (unsigned suffix = 2; suffix < kPrivateNameSuffixMax; ++suffix) {
    if (::access((root + "/" + name).c_str(), F_OK) != 0) break;
    name = fmt::format("run-{}-{}", ::getpid(), suffix);
  }
  return name;
}

std::string records_directory(const NodePaths& paths) { return paths.directory + "/records"; }

LaunchedNode launch_node(const Configuration& configuration) {
  const NodeConfig& config = configuration.node;
  LaunchedNode node;
  node.paths = node_paths(config.name);
  ensure_run_root(node.paths.run_root);
  // A private node's name is its own already, and runs that start together need not wait for each
  // other.
  std::optional<RunRootLock> lock;
  if (!config.private_node) lock.emplace(node.paths.run_root);
  create_node_directory(node.paths);
  std::array<int, 2> ready = {-1, -1};
  try {
    write_config(node.paths, configuration);
    ServiceStart start;
    start.executable = executable_path();
    start.arguments = {
        "cairn",    "node-service",         "--name",     config.name,
        "--config", node.paths.config_file, "--ready-fd", std::to_string(kReadyDescriptor)};
    start.environment = service_environment(node.paths);
    start.log_descriptor =
        ::open(node.paths.log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (start.log_descriptor < 0 || ::pipe2(ready.data(), O_CLOEXEC) != 0) {
      throw Failure(fmt::format("cannot prepare node {}: {}", config.name, std::strerror(errno)));
    }
    start.ready_write = ready[1];
    node.service = start_service(start);
    ::close(ready[1]);
    ::close(start.log_descriptor);
    if (node.service < 0)
      throw Failure(fmt::format("cannot start a process: {}", std::strerror(errno)));
  } catch (...) {
    remove_node_directory(node.paths);
    throw;
  }
  const std::string text = read_ready_line(ready[0]);
  if (config.private_node) {
    node.lifeline = ready[0];
  } else {
    ::close(ready[0]);
  }
  if (text != "ready\n") fail_to_start(node, text);
  return node;
}

bool wait_for_end(const NodePaths& paths, pid_t service, double seconds) {
  const bool ends = ends_within(paths, service, seconds, nullptr);
  if (ends) remove_node_directory(paths);
  return ends;
}

NodeEnd wait_for_end(const LaunchedNode& node, double seconds) {
  NodeEnd end;
  int status = 0;
  end.has_ended = ends_within(node.paths, node.service, seconds, &status);
  if (!end.has_ended) return end;
  if (WIFEXITED(status)) end.exit_status = WEXITSTATUS(status);
  if (end.exit_status != 0) end.last_error = last_error_of(node.paths.log_file);
  remove_node_directory(node.paths);
  return end;
}

}  // namespace cairn::cli
