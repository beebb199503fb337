// SPDX-License-Identifier: Apache-2.0
#include "cli/node/run_directory.h"

#include <dirent.h>
#include <fmt/format.h>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/library_file.h"
#include "cli/node/control_socket.h"
#include "cli/terminal/failure.h"

namespace cairn::cli {
namespace {

constexpr size_t kNodeNameSizeMax = 48;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::vector<std::string> list_directory(const std::string& path) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), ::closedir);
  if (!directory) return names;
  while (const dirent* entry = ::readdir(directory.get())) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

NodePaths paths_in(const std::string& directory) {
  NodePaths paths;
  const size_t slash = directory.rfind('/');
  paths.name = directory.substr(slash + 1);
  paths.run_root = directory.substr(0, slash);
  paths.directory = directory;
  paths.control_socket = directory + "/control.sock";
  paths.client_socket = directory + "/client.sock";
  paths.config_file = directory + "/config.yaml";
  paths.log_file = directory + "/node.log";
  if (paths.control_socket.size() >= sizeof(sockaddr_un{}.sun_path)) {
    throw Failure(fmt::format("the path {} is too long for a socket ({} characters at most)",
                              paths.control_socket, sizeof(sockaddr_un{}.sun_path) - 1),
                  "set CAIRN_RUN_ROOT to a shorter directory, or choose a shorter node name");
  }
  return paths;
}

// The other users' run roots that the conventions allow, for a message that says whose the node is.
std::string foreign_node_directory(const std::string& name) {
  for (const char* parent : {"/tmp", "/run/user"}) {
    for (const std::string& entry : list_directory(parent)) {
      const bool is_temporary = std::strcmp(parent, "/tmp") == 0;
      if (is_temporary && entry.rfind("cairn-", 0) != 0) continue;
      std::string directory = std::string(parent) + "/" + entry;
      if (!is_temporary) directory += "/cairn";
      directory += "/" + name;
      struct stat status{};
      if (::stat(directory.c_str(), &status) == 0 && status.st_uid != ::geteuid()) return directory;
    }
  }
  return "";
}

void check_owner(const std::string& directory) {
  struct stat status{};
  if (::stat(directory.c_str(), &status) != 0) {
    const int error = errno;
    throw Failure(fmt::format("node directory {}: {}", directory, std::strerror(error)),
                  error == EACCES ? "it belongs to another user; start your own node with "
                                    "`cairn up --name NAME`"
                                  : "`cairn up --name NAME` starts a node");
  }
  if (status.st_uid != ::geteuid()) {
    throw Failure(fmt::format("node {} belongs to user {}, not to {}", directory,
                              user_name(status.st_uid), user_name(::geteuid())),
                  "a node serves its own user only; start your own with `cairn up --name NAME`");
  }
}

}  // namespace

std::string run_root_path() {
  std::string root = environment("CAIRN_RUN_ROOT");
  if (root.empty()) {
    const std::string runtime = environment("XDG_RUNTIME_DIR");
    root = runtime.empty() ? fmt::format("/tmp/cairn-{}", ::geteuid()) : runtime + "/cairn";
  }
  if (root.front() != '/') {
    throw Failure(fmt::format("CAIRN_RUN_ROOT is \"{}\", which is not an absolute path", root),
                  "set it to a directory of your own, or unset it");
  }
  while (root.size() > 1 && root.back() == '/') root.pop_back();
  return root;
}

void ensure_run_root(const std::string& run_root) {
  if (::mkdir(run_root.c_str(), 0700) != 0 && errno != EEXIST) {
    const int error = errno;
    throw Failure(fmt::format("cannot create the run root {}: {}", run_root, std::strerror(error)),
                  "set CAIRN_RUN_ROOT to a directory that you can write, on a local file system");
  }
  struct stat status{};
  // lstat: a link planted in /tmp by someone else must not lead us into his directory.
  if (::lstat(run_root.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) {
    throw Failure(fmt::format("the run root {} is not a directory", run_root),
                  "remove it, or set CAIRN_RUN_ROOT to a directory of your own");
  }
  if (status.st_uid != ::geteuid()) {
    throw Failure(fmt::format("the run root {} belongs to user {}, not to {}", run_root,
                              user_name(status.st_uid), user_name(::geteuid())),
                  "set CAIRN_RUN_ROOT to a directory of your own");
  }
  if ((status.st_mode & 077) != 0) {
    throw Failure(fmt::format("the run root {} is open to other users (mode {:04o})", run_root,
                              status.st_mode & 07777),
                  fmt::format("run `chmod 700 {}`", run_root));
  }
}

void check_node_name(const std::string& name) {
  const bool good =
      !name.empty() && name.size() <= kNodeNameSizeMax &&
      std::isalnum(static_cast<unsigned char>(name.front())) != 0 &&
      std::all_of(name.begin(), name.end(), [](unsigned char letter) {
        return std::isalnum(letter) != 0 || letter == '_' || letter == '-' || letter == '.';
      });
  if (!good) {
    throw Failure(fmt::format("\"{}\" is not a node name", name),
                  fmt::format("use letters, digits, \"_\", \"-\" and \".\", at most {}, beginning "
                              "with a letter or digit",
                              kNodeNameSizeMax));
  }
}

NodePaths node_paths(const std::string& name) { return paths_in(run_root_path() + "/" + name); }

std::vector<std::string> live_nodes() {
  std::vector<std::string> nodes;
  const std::string root = run_root_path();
  for (const std::string& name : list_directory(root)) {
    if (node_answers(root + "/" + name + "/control.sock")) nodes.push_back(name);
  }
  return nodes;
}

bool inside_run() { return !environment("CAIRN_SOCKET").empty(); }

NodePaths select_node(const std::string& requested) {
  NodePaths paths;
  if (requested.find('/') != std::string::npos) {
    const std::unique_ptr<char, void (*)(void*)> resolved(::realpath(requested.c_str(), nullptr),
                                                          std::free);
    paths = paths_in(resolved ? resolved.get() : requested);
    check_owner(paths.directory);
  } else if (!requested.empty()) {
    check_node_name(requested);
    paths = node_paths(requested);
  } else if (inside_run()) {
    const std::string socket = environment("CAIRN_SOCKET");
    paths = paths_in(socket.substr(0, socket.rfind('/')));
  } else {
    const auto nodes = live_nodes();
    if (nodes.empty()) {
      throw Failure(fmt::format("no node is running in {}", run_root_path()),
                    "`cairn run -- PROGRAM` starts one for a program, `cairn up --name NAME` keeps "
                    "one for several");
    }
    if (nodes.size() > 1) {
      throw Failure(fmt::format("several nodes are running: {}", fmt::join(nodes, ", ")),
                    "choose one with --node NAME");
    }
    paths = node_paths(nodes.front());
  }
  return paths;
}

void fail_unknown_node(const NodePaths& paths) {
  const std::string foreign = foreign_node_directory(paths.name);
  if (!foreign.empty()) check_owner(foreign);
  const auto nodes = live_nodes();
  struct stat status{};
  const bool leftover = ::stat(paths.directory.c_str(), &status) == 0;
  throw Failure(leftover
                    ? fmt::format("node {} does not answer: its service is not running (log: {})",
                                  paths.name, paths.log_file)
                    : fmt::format("no node named {} in {}", paths.name, paths.run_root),
                nodes.empty() ? fmt::format("start it with `cairn up --name {}`", paths.name)
                              : fmt::format("running: {}; start it with `cairn up --name {}`",
                                            fmt::join(nodes, ", "), paths.name));
}

std::string executable_path() {
  std::array<char, PATH_MAX> path{};
  const ssize_t size = ::readlink("/proc/self/exe", path.data(), path.size() - 1);
  if (size <= 0) throw Failure("cannot read /proc/self/exe", "Cairn needs /proc to be mounted");
  return {path.data(), static_cast<size_t>(size)};
}

std::string installed_file(const std::string& name) {
  const std::string executable = executable_path();
  const std::string directory = executable.substr(0, executable.rfind('/'));
  return directory.substr(0, directory.rfind('/')) + "/" + name;
}

std::string preload_library_path() {
  const std::string prefix = installed_file("");
  for (const char* place : {"lib/libcairn_preload.so", "lib/cairn/libcairn_preload.so"}) {
    std::string library = prefix + place;
    if (::access(library.c_str(), R_OK) == 0) return library;
  }
  throw Failure(
      fmt::format("{}lib/libcairn_preload.so is missing", prefix),
      "it belongs beside the directory of the cairn command; build or install Cairn again");
}

ArrayConnector find_array_connector() {
  ArrayConnector found;
  const std::string folder = installed_file("lib/cairn/hdf5");
  found.path = folder + "/libcairn_hdf5.so";
  found.is_there = ::access(found.path.c_str(), F_OK) == 0 || errno != ENOENT;
  if (const char* problem = plugin_problem(folder.c_str(), found.path.c_str()); problem != nullptr)
    found.problem = problem;
  return found;
}

void require_array_connector() {
  const ArrayConnector connector = find_array_connector();
  if (connector.problem.empty()) return;
  throw Failure(fmt::format("--arrays on: {} {}", connector.path, connector.problem),
                connector.is_there
                    ? "install Cairn again, or run without --arrays"
                    : "build Cairn where the headers of HDF5 can be had (./dev build says what "
                      "failed), or run without --arrays");
}

std::string user_name(uid_t user) {
  const passwd* entry = ::getpwuid(user);
  return entry == nullptr ? fmt::format("{}", user) : entry->pw_name;
}

}  // namespace cairn::cli
