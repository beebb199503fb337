// SPDX-License-Identifier: Apache-2.0
#include "multiprocess/node_process.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "service/node/service.h"

namespace cairn::testing {
namespace {

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void pause_ms(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

std::string make_directory() {
  const char* place = std::getenv("TEST_TMPDIR");
  std::string pattern =
      std::string(place != nullptr ? place : "/tmp") + "/cairn-multiprocess-XXXXXX";
  const char* made = ::mkdtemp(pattern.data());
  return made == nullptr ? std::string() : std::string(made);
}

}  // namespace

NodeProcess::NodeProcess(const NodeOptions& options) : directory_(make_directory()) {
  std::filesystem::create_directory(data_directory());
  config_.name = "test";
  config_.run_root = directory_;
  config_.node_directory = directory_ + "/node";
  config_.ram_capacity_bytes = options.ram_bytes;
  config_.huge_pages = HugePages::kNever;
  config_.clients_max = options.clients_max;
  config_.objects_max = 4096;
  config_.flush_delay_ms = options.flush_delay_ms;
  config_.flush_retry_ms = options.flush_retry_ms;
  config_.resolved = {{"ram.capacity", std::to_string(options.ram_bytes), "command line"}};
  if (options.file_tier_bytes != 0) {
    std::filesystem::create_directory(directory_ + "/tier");
    config_.tiers.push_back(FileTierConfig{"disk", directory_ + "/tier", options.file_tier_bytes});
  }
  int ready[2];
  if (::pipe(ready) != 0) std::abort();
  pid_ = ::fork();
  if (pid_ == 0) {
    ::close(ready[0]);
    config_.ready_fd = ready[1];
    ::_exit(node::run_service(config_));
  }
  ::close(ready[1]);
  char letter = 0;
  while (::read(ready[0], &letter, 1) == 1) ready_line_.push_back(letter);
  ::close(ready[0]);
}

NodeProcess::~NodeProcess() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  std::error_code ignored;
  if (!directory_.empty()) std::filesystem::remove_all(directory_, ignored);
}

void NodeProcess::signal(int number) const {
  if (pid_ > 0) ::kill(pid_, number);
}

std::string NodeProcess::log() const {
  std::ifstream stream(config_.node_directory + "/node.log");
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

bool NodeProcess::is_running() {
  if (pid_ > 0 && ::waitpid(pid_, nullptr, WNOHANG) == pid_) pid_ = -1;
  return pid_ > 0;
}

nlohmann::json NodeProcess::status_within(int seconds) const {
  const nlohmann::json reply = request({{"command", "status"}}, seconds);
  return reply.contains("status") ? reply["status"] : nlohmann::json();
}

nlohmann::json NodeProcess::request(const nlohmann::json& request, int seconds) const {
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval patience{seconds, 0};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = config_.node_directory + "/control.sock";
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  nlohmann::json reply = {{"kind", "unreachable"}};
  if (::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
    const std::string line = request.dump() + "\n";
    (void)!::write(socket, line.data(), line.size());
    std::string received;
    char buffer[65536];
    ssize_t got = 0;
    while (reply["kind"] != "done" && reply["kind"] != "error" &&
           (got = ::read(socket, buffer, sizeof buffer)) > 0) {
      received.append(buffer, static_cast<std::size_t>(got));
      std::size_t end = 0;
      while ((end = received.find('\n')) != std::string::npos) {
        reply = nlohmann::json::parse(received.substr(0, end));
        received.erase(0, end + 1);
      }
    }
  }
  ::close(socket);
  return reply;
}

bool NodeProcess::wait_until_reaped(unsigned clients_left, double seconds) const {
  const double deadline = now_seconds() + seconds;
  while (now_seconds() < deadline) {
    if (status()["slots_in_use"].get<unsigned>() <= clients_left) return true;
    pause_ms(5);
  }
  return false;
}

int NodeProcess::shut_down() {
  request({{"command", "shutdown"}, {"drain", true}});
  return wait_for_exit(20);
}

int NodeProcess::wait_for_exit(double seconds) {
  const double deadline = now_seconds() + seconds;
  while (now_seconds() < deadline) {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    pause_ms(5);
  }
  return -1;
}

}  // namespace cairn::testing
