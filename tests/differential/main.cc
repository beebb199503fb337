// SPDX-License-Identifier: Apache-2.0
//
// cairn_differential: runs a script of file operations by several processes and threads and logs
// every result. It knows nothing of Cairn; run.py compares the log of a native run with that of a
// run under Cairn.
//
//   cairn_differential --generate --seed 7 --ops 1000            prints a script
//   cairn_differential --run SCRIPT --dir DIR --log FILE         carries it out
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <thread>

#include "worker.h"

namespace cairn::differential {
namespace {

constexpr int kActors = kProcesses * kThreads;
constexpr int kAnswerTimeoutMs = 60000;

struct Command {
  Operation operation;
  int burst_actor = 0;
};

struct Channel {
  int command[2];
  int answer[2];
};

bool read_fully(int fd, void* bytes, std::size_t size) {
  auto* at = static_cast<char*>(bytes);
  while (size > 0) {
    const ssize_t got = read(fd, at, size);
    if (got <= 0) {
      if (got < 0 && errno == EINTR) continue;
      return false;
    }
    at += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

void answer(int fd, const std::string& text) {
  const auto size = static_cast<std::uint32_t>(text.size());
  (void)!write(fd, &size, sizeof size);
  (void)!write(fd, text.data(), text.size());
}

void serve(Worker& worker, const Channel& channel) {
  Command command;
  while (read_fully(channel.command[0], &command, sizeof command)) {
    if (command.operation.kind == Kind::burst) {
      Text text;
      run_burst(worker, command.operation, command.burst_actor, text);
      answer(channel.answer[1], text.str());
    } else {
      answer(channel.answer[1], run_operation(worker, command.operation));
    }
  }
}

// Ends by exit(), with streams and descriptors left open: what the C library flushes then counts.
[[noreturn]] void worker_main(int process, const std::string& directory, Shared* shared,
                              const std::vector<Channel>& channels) {
  Worker worker;
  worker.process = process;
  worker.directory = directory;
  worker.directory_fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  worker.shared = shared;
  for (int actor = 0; actor < kActors; ++actor) {
    close(channels[static_cast<std::size_t>(actor)].command[1]);
    close(channels[static_cast<std::size_t>(actor)].answer[0]);
  }
  const auto first = static_cast<std::size_t>(process * kThreads);
  std::vector<std::thread> threads;
  for (std::size_t thread = 1; thread < kThreads; ++thread)
    threads.emplace_back([&, thread] { serve(worker, channels[first + thread]); });
  serve(worker, channels[first]);
  for (auto& thread : threads) thread.join();
  exit(0);
}

class Coordinator {
 public:
  Coordinator(std::string directory, FILE* log) : directory_(std::move(directory)), log_(log) {}

  // Before this operation one byte of a file is changed behind the script's back: the driver's own
  // test shows that this does not go unnoticed.
  void set_fault(int number) { fault_number_ = number; }

  bool start() {
    void* memory =
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return false;
    shared_ = new (memory) Shared();
    channels_.resize(kActors);
    for (auto& channel : channels_)
      if (pipe2(channel.command, O_CLOEXEC) != 0 || pipe2(channel.answer, O_CLOEXEC) != 0)
        return false;
    for (int process = 0; process < kProcesses; ++process) {
      const pid_t child = fork();
      if (child == 0) worker_main(process, directory_, shared_, channels_);
      if (child < 0) return false;
      shared_->pids[static_cast<std::size_t>(process)] = child;
    }
    for (auto& channel : channels_) {
      close(channel.command[0]);
      close(channel.answer[1]);
    }
    return true;
  }

  bool run(const Operation& op) {
    if (op.number == fault_number_) {
      const int fd = open("s0", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
      char byte = 0;
      (void)!pread(fd, &byte, 1, 0);
      byte = static_cast<char>(byte ^ 1);
      (void)!pwrite(fd, &byte, 1, 0);
      close(fd);
    }
    if (op.kind == Kind::burst) return run_all(op);
    const int actor = op.process * kThreads + op.thread;
    std::string text;
    if (!ask(actor, {op, 0}) || !hear(op, actor, &text)) return false;
    fprintf(log_, "#%d p%dt%d %s\n", op.number, op.process, op.thread, text.c_str());
    return true;
  }

  // Lets the workers leave, and prints what the driver must know to judge the directory.
  int finish() {
    for (auto& channel : channels_) close(channel.command[1]);
    int failures = 0;
    for (const pid_t pid : shared_->pids) {
      int status = 0;
      waitpid(pid, &status, 0);
      if (status != 0) {
        fprintf(log_, "! worker ended with status %d\n", status);
        ++failures;
      }
    }
    for (std::uint32_t i = 0; i < shared_->loose_count; ++i)
      fprintf(log_, "! loose %llu\n", static_cast<unsigned long long>(shared_->loose_inodes[i]));
    return failures == 0 ? 0 : 1;
  }

  void kill_workers() {
    for (const pid_t pid : shared_->pids) kill(pid, SIGKILL);
  }

 private:
  bool ask(int actor, const Command& command) {
    const int fd = channels_[static_cast<std::size_t>(actor)].command[1];
    return write(fd, &command, sizeof command) == static_cast<ssize_t>(sizeof command);
  }

  bool hear(const Operation& op, int actor, std::string* text) {
    struct pollfd waiting = {channels_[static_cast<std::size_t>(actor)].answer[0], POLLIN, 0};
    const int ready = poll(&waiting, 1, kAnswerTimeoutMs);
    std::uint32_t size = 0;
    if (ready == 1 && read_fully(waiting.fd, &size, sizeof size)) {
      text->resize(size);
      if (read_fully(waiting.fd, text->data(), size)) return true;
    }
    fprintf(log_, "#%d %s by actor %d\n! %s\n", op.number, ready == 0 ? "HANG" : "DIED", actor,
            to_line(op).c_str());
    return false;
  }

  bool run_all(const Operation& op) {
    std::string text;
    if (!ask(0, {op, -1}) || !hear(op, 0, &text)) return false;
    for (int actor = 0; actor < kActors; ++actor)
      if (!ask(actor, {op, actor})) return false;
    fprintf(log_, "#%d all burst", op.number);
    for (int actor = 0; actor < kActors; ++actor) {
      if (!hear(op, actor, &text)) return false;
      fprintf(log_, "%s", text.c_str());
    }
    if (!ask(0, {op, kActors}) || !hear(op, 0, &text)) return false;
    fprintf(log_, "%s\n", text.c_str());
    return true;
  }

  std::string directory_;
  FILE* log_;
  int fault_number_ = -1;
  Shared* shared_ = nullptr;
  std::vector<Channel> channels_;
};

int run_script(const std::string& script, const std::string& directory, const std::string& log_path,
               int fault) {
  std::ifstream in(script);
  FILE* log = log_path.empty() ? stdout : fopen(log_path.c_str(), "we");
  if (!in || log == nullptr || chdir(directory.c_str()) != 0) {
    std::cerr << "cairn_differential: cannot use " << script << ", " << directory << " or "
              << log_path << "\n";
    return 2;
  }
  std::vector<Operation> operations;
  std::string line;
  Operation op;
  while (std::getline(in, line))
    if (from_line(line, &op)) operations.push_back(op);
  umask(022);
  signal(SIGPIPE, SIG_IGN);
  install_bus_handler();
  mkdir("d0", 0755);
  mkdir("d1", 0755);
  Coordinator coordinator(directory, log);
  coordinator.set_fault(fault);
  fflush(log);
  if (!coordinator.start()) return 2;
  for (const auto& operation : operations) {
    if (coordinator.run(operation)) continue;
    coordinator.kill_workers();
    fclose(log);
    return 3;
  }
  const int result = coordinator.finish();
  fclose(log);
  return result;
}

}  // namespace
}  // namespace cairn::differential

int main(int argc, char** argv) {
  using namespace cairn::differential;
  if (argc > 1 && strcmp(argv[1], "--child") == 0) return child_main(argc, argv);
  GenerateOptions options;
  bool generating = false;
  int fault = -1;
  std::string script, directory, log;
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    if (option == "--generate") {
      generating = true;
      continue;
    }
    if (option == "--seed") options.seed = strtoull(value, nullptr, 10);
    if (option == "--ops") options.operations = atoi(value);
    if (option == "--classes") options.classes = value;
    if (option == "--without") options.without = value;
    if (option == "--run") script = value;
    if (option == "--dir") directory = value;
    if (option == "--log") log = value;
    if (option == "--fault") fault = atoi(value);
    ++i;
  }
  if (generating) {
    for (const auto& op : generate(options)) std::cout << to_line(op) << '\n';
    return 0;
  }
  if (!script.empty() && !directory.empty()) return run_script(script, directory, log, fault);
  std::cerr
      << "usage: cairn_differential --generate --seed N --ops N [--classes LIST] [--without LIST]\n"
         "       cairn_differential --run SCRIPT --dir DIR [--log FILE] [--fault NUMBER]\n";
  return 2;
}
