// SPDX-License-Identifier: Apache-2.0
#include "cli/launch/program_start.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <optional>
#include <string_view>

extern char** environ;

namespace cairn::cli {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kOwnAuditMachine = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kOwnAuditMachine = AUDIT_ARCH_AARCH64;
#else
#error "the filter's machine check is written for x86_64 and aarch64"
#endif

// The three calls have the same numbers on every machine that got them after the tables were
// unified.
static_assert(__NR_io_uring_setup == 425 && __NR_io_uring_enter == 426 &&
              __NR_io_uring_register == 427);
constexpr uint32_t kFirstCall = 425;
constexpr uint32_t kLastCall = 427;
// x86_64 numbers with this bit are those of the x32 interface, which has io_uring at the same
// numbers.
constexpr uint32_t kX32Bit = 0x40000000;

bool is_variable(std::string_view entry, std::string_view name) {
  return entry.size() > name.size() && entry.substr(0, name.size()) == name &&
         entry[name.size()] == '=';
}

// Other libraries that were to be preloaded stay, after ours: ours must see the program's calls
// first.
std::string preload_value(const std::string& library, std::string_view previous) {
  std::string value = library;
  while (!previous.empty()) {
    const size_t end = previous.find_first_of(": ");
    const std::string_view part = previous.substr(0, end);
    const std::string_view name = part.substr(part.rfind('/') + 1);
    if (!part.empty() && name != "libcairn_preload.so") value += ":" + std::string(part);
    previous.remove_prefix(end == std::string_view::npos ? previous.size() : end + 1);
  }
  return value;
}

// Without pointers into std::string: between vfork and exec nothing may allocate.
struct RawStart {
  const char* path;
  char** arguments;
  char** shell_arguments;
  char** environment;
  const ProgramStart* start;
};

// Written by the child, which shares our memory until it executes.
struct ChildOutcome {
  volatile int error = 0;
  const char* volatile failed_step = "";
};

[[noreturn]] void fail_child(ChildOutcome* outcome, int error, const char* step) {
  outcome->error = error;
  outcome->failed_step = step;
  ::_exit(126);
}

[[noreturn]] void run_child(const RawStart& raw, ChildOutcome* outcome) {
  if (!raw.start->scratch.empty()) {
    const char* step = "";
    if (const int error = enter_scratch(raw.start->scratch, &step); error != 0)
      fail_child(outcome, error, step);
  }
  if (!raw.start->allow_io_uring) {
    const int error = refuse_io_uring();
    // A machine whose kernel has no seccomp has hardly io_uring either; the run is not refused for
    // it.
    if (error != 0 && error != EINVAL && error != ENOSYS)
      fail_child(outcome, error, "seccomp filter");
  }
  if (raw.start->restore_pipe_signal) ::signal(SIGPIPE, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &raw.start->signal_mask, nullptr);
  ::execve(raw.path, raw.arguments, raw.environment);
  // A script without "#!" is given to the shell, as execvp does.
  if (errno == ENOEXEC) ::execve("/bin/sh", raw.shell_arguments, raw.environment);
  fail_child(outcome, errno, "exec");
}

__attribute__((noinline)) pid_t vfork_child(const RawStart& raw, ChildOutcome* outcome) {
  const pid_t child = ::vfork();
  if (child == 0) run_child(raw, outcome);
  return child;
}

// A program in a user namespace of its own needs a process of its own, not a vforked one
// (unshare(2)); it tells by the closing of a pipe that it has been executed.
pid_t fork_child(const RawStart& raw, ChildOutcome* outcome) {
  int executed[2];
  if (::pipe2(executed, O_CLOEXEC) != 0) return -1;
  const pid_t child = ::fork();
  if (child == 0) run_child(raw, outcome);
  ::close(executed[1]);
  char nothing = 0;
  while (child > 0 && ::read(executed[0], &nothing, 1) < 0 && errno == EINTR) {
  }
  ::close(executed[0]);
  return child;
}

// Memory that a forked child shares with us.
class SharedOutcome {
 public:
  SharedOutcome()
      : memory_(::mmap(nullptr, sizeof(ChildOutcome), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (memory_ != MAP_FAILED) new (memory_) ChildOutcome;
  }
  ~SharedOutcome() {
    if (memory_ != MAP_FAILED) ::munmap(memory_, sizeof(ChildOutcome));
  }
  SharedOutcome(const SharedOutcome&) = delete;
  SharedOutcome& operator=(const SharedOutcome&) = delete;
  ChildOutcome* get() const {
    return memory_ == MAP_FAILED ? nullptr : static_cast<ChildOutcome*>(memory_);
  }

 private:
  void* const memory_;
};

// AddressSanitizer's runtime refuses to start behind a preloaded library unless a variable tells it
// not to look; the library sets the same variable for the program's children
// (frontends/processes/launch_environment.cc).
std::string sanitizer_options(std::string_view given) {
  constexpr std::string_view kAnyOrder = "verify_asan_link_order=0";
  if (given.find(kAnyOrder) != std::string_view::npos) return std::string(given);
  return std::string(kAnyOrder) + (given.empty() ? "" : ":") + std::string(given);
}

// Whether a launcher of MPI has started this process as one of the ranks of a program: Open MPI's,
// one that knows PMIx or PMI, or one of Cray's (PALS, ALPS).
bool is_rank() {
  for (const char* name :
       {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "PALS_RANKID", "ALPS_APP_PE"}) {
    if (std::getenv(name) != nullptr) return true;
  }
  return false;
}

}  // namespace

std::vector<std::string> program_environment(const ProgramEnvironment& run) {
  std::vector<std::string> environment;
  // With a run of its own a rank does not know whether the others have one.
  const bool each_rank_runs = is_rank();
  std::string_view previous_preload;
  std::string_view previous_sanitizer;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (is_variable(text, "LD_PRELOAD")) {
      previous_preload = text.substr(text.find('=') + 1);
      continue;
    }
    if (is_variable(text, "ASAN_OPTIONS")) {
      previous_sanitizer = text.substr(text.find('=') + 1);
      continue;
    }
    // Most variables are the user's own.
    bool replaced = false;
    if (text.substr(0, 6) == "CAIRN_") {
      for (const char* name :
           {"CAIRN_SOCKET", "CAIRN_BUFFER", "CAIRN_EXCLUDE", "CAIRN_RUN", "CAIRN_HANDLING",
            "CAIRN_FDS", "CAIRN_ALLOW_IO_URING", "CAIRN_ARRAYS"}) {
        replaced = replaced || is_variable(text, name);
      }
    }
    replaced = replaced || (each_rank_runs && is_variable(text, "CAIRN_MPI"));
    if (!replaced) environment.emplace_back(text);
  }
  environment.push_back("LD_PRELOAD=" + preload_value(run.preload_library, previous_preload));
  environment.push_back("ASAN_OPTIONS=" + sanitizer_options(previous_sanitizer));
  environment.push_back("CAIRN_SOCKET=" + run.client_socket);
  environment.push_back(fmt::format("CAIRN_BUFFER={}", fmt::join(run.buffer_directories, ":")));
  if (!run.exclude.empty())
    environment.push_back(fmt::format("CAIRN_EXCLUDE={}", fmt::join(run.exclude, ":")));
  environment.push_back("CAIRN_RUN=" + run.run_id);
  if (!run.handling.empty()) environment.push_back("CAIRN_HANDLING=" + run.handling);
  if (!run.arrays.empty()) environment.push_back("CAIRN_ARRAYS=" + run.arrays);
  if (each_rank_runs) environment.push_back("CAIRN_MPI=off");
  if (run.allow_io_uring) environment.push_back("CAIRN_ALLOW_IO_URING=1");
  return environment;
}

int refuse_io_uring() {
  const auto field = [](size_t offset) { return static_cast<uint32_t>(offset); };
  // Jump distances count instructions after the jump. A foreign machine's calls (32-bit programs)
  // pass: their io_uring numbers are the same, and the check of the machine would have to list them
  // all.
  const sock_filter instructions[] = {
      /* 0 */ BPF_STMT(BPF_LD | BPF_W | BPF_ABS, field(offsetof(seccomp_data, arch))),
      /* 1 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kOwnAuditMachine, 0, 5),
      /* 2 */ BPF_STMT(BPF_LD | BPF_W | BPF_ABS, field(offsetof(seccomp_data, nr))),
      /* 3 */ BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ~kX32Bit),
      /* 4 */ BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kFirstCall, 0, 2),
      /* 5 */ BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, kLastCall, 1, 0),
      /* 6 */ BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      /* 7 */ BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {.len = sizeof(instructions) / sizeof(instructions[0]),
                              .filter = const_cast<sock_filter*>(instructions)};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) return errno;
  return 0;
}

std::vector<char*> exec_words(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

StartedProgram start_program(const ProgramStart& start) {
  std::vector<char*> arguments = exec_words(start.arguments);
  std::vector<char*> environment = exec_words(start.environment);
  std::vector<std::string> shell = {"sh", start.path};
  shell.insert(shell.end(), start.arguments.begin() + 1, start.arguments.end());
  std::vector<char*> shell_arguments = exec_words(shell);
  const RawStart raw = {start.path.c_str(), arguments.data(), shell_arguments.data(),
                        environment.data(), &start};
  // A vforked child has our own memory.
  ChildOutcome own;
  std::optional<SharedOutcome> shared;
  if (!start.scratch.empty()) shared.emplace();
  StartedProgram started;
  if (ChildOutcome* outcome = shared ? shared->get() : &own; outcome != nullptr) {
    started.process = shared ? fork_child(raw, outcome) : vfork_child(raw, outcome);
    if (started.process >= 0 && outcome->error != 0) {
      while (::waitpid(started.process, nullptr, 0) < 0 && errno == EINTR) {
      }
      started.process = -1;
      started.error = outcome->error;
      started.failed_step = outcome->failed_step;
      return started;
    }
  }
  if (started.process < 0) {
    started.error = errno;
    started.failed_step = "fork";
  }
  return started;
}

}  // namespace cairn::cli
