// SPDX-License-Identifier: Apache-2.0
#include "cli/trace/trace_player.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "cli/terminal/failure.h"
#include "cli/terminal/output.h"
#include "cli/trace/trace_input.h"

namespace cairn::cli {
namespace {

void sleep_until(std::int64_t end_ns) {
  const timespec end = to_timespec(end_ns);
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, nullptr) == EINTR) {
  }
}

struct FreeMemory {
  void operator()(char* memory) const { std::free(memory); }
};

// Page-aligned: the kernel copies to others at a fraction of the speed.
class CallBuffer {
 public:
  std::span<char> room(std::size_t bytes) {
    constexpr std::size_t kPage = 4096;
    if (bytes > bytes_) {
      bytes_ = (bytes + kPage - 1) / kPage * kPage;
      memory_.reset(static_cast<char*>(std::aligned_alloc(kPage, bytes_)));
      if (memory_ == nullptr)
        throw Failure(fmt::format("there is no memory for an access of {} bytes", bytes),
                      "play it in shorter calls: --call 64M");
    }
    return {memory_.get(), bytes};
  }

 private:
  std::unique_ptr<char, FreeMemory> memory_;
  std::size_t bytes_ = 0;
};

// What the processes of a replay have in common; one of them may have stopped all.
struct Together {
  std::int64_t began_ns = 0;
  unsigned processes = 1;
  std::atomic<bool>* must_stop = nullptr;
};

class TracePlayer {
 public:
  TracePlayer(const PlayOptions& options, const PlayPlan& plan, const PlayedFiles& files,
              const Together& together, unsigned number)
      : options_(options), plan_(plan), files_(files), together_(together), number_(number) {}
  ~TracePlayer() {
    for (const auto& [stream, descriptor] : open_) ::close(descriptor);
  }
  TracePlayer(const TracePlayer&) = delete;
  TracePlayer& operator=(const TracePlayer&) = delete;

  PlayTotals play() {
    PlayedTrace trace(open_trace_or_fail(options_.trace), options_.selection);
    TraceEvent event;
    for (std::uint64_t at = 0; trace.next(&event); ++at) {
      if (at == 0) first_ns_ = event.time_ns;
      if (event.process % together_.processes != number_) continue;
      if (together_.must_stop->load(std::memory_order_relaxed)) break;
      if (!plan_.files[event.file].is_used) continue;
      step(event);
      if (plan_.streams.at(stream_of(event)).last_event == at) close(stream_of(event));
    }
    totals_.wall_ns = monotonic_ns() - together_.began_ns;
    return totals_;
  }

 private:
  void step(const TraceEvent& event) {
    if (options_.pace.keeps_times && event.time_ns > first_ns_)
      sleep_until(together_.began_ns + static_cast<std::int64_t>(event.time_ns - first_ns_));
    if (event.kind == TraceKind::kClose) return close(stream_of(event));
    if (event.kind == TraceKind::kOpen) {
      close(stream_of(event));
      descriptor_of(event);
      return;
    }
    const int descriptor = descriptor_of(event);
    const PlayedFile& file = plan_.files[event.file];
    event.kind == TraceKind::kWrite ? write(descriptor, file, event)
                                    : read(descriptor, file, event);
    const PlayPace& pace = options_.pace;
    const auto pause_ns =
        pace.pause_ns + static_cast<std::int64_t>(pace.pause_ns_per_byte * event.length);
    if (pause_ns > 0) sleep_until(monotonic_ns() + pause_ns);
  }

  [[noreturn]] void fail(const PlayedFile& file, const std::string& what,
                         const std::string& remedy) const {
    throw Failure(fmt::format("{}: {}", printable(files_.path_of(file)), what), remedy);
  }
  [[noreturn]] void fail_errno(const PlayedFile& file, const std::string& what) const {
    fail(file, fmt::format("{}: {}", what, std::strerror(errno)),
         errno == EMFILE ? "the trace has many files open: raise `ulimit -n`, or say --processes"
                         : "the accesses before it are done");
  }

  int descriptor_of(const TraceEvent& event) {
    const PlayedStream stream = stream_of(event);
    const auto found = open_.find(stream);
    if (found != open_.end()) return found->second;
    const PlayedFile& file = plan_.files[event.file];
    const StreamUse& use = plan_.streams.at(stream);
    int flags = use.writes ? (use.reads ? O_RDWR : O_WRONLY) : O_RDONLY;
    if (file.is_written) flags |= O_CREAT;
    const std::string path = files_.path_of(file);
    const std::int64_t began = monotonic_ns();
    const int descriptor = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
    totals_.io_ns += monotonic_ns() - began;
    if (descriptor < 0) fail_errno(file, "cannot be opened");
    ++totals_.opens;
    open_.emplace(stream, descriptor);
    return descriptor;
  }

  void close(const PlayedStream& stream) {
    const auto found = open_.find(stream);
    if (found == open_.end()) return;
    const std::int64_t began = monotonic_ns();
    const int result = ::close(found->second);
    totals_.io_ns += monotonic_ns() - began;
    open_.erase(found);
    if (result != 0) fail_errno(plan_.files[stream.file], "an error at its close");
  }

  void read(int descriptor, const PlayedFile& file, const TraceEvent& event) {
    const std::span<char> target = buffer_.room(event.length);
    std::size_t done = 0;
    const std::int64_t began = monotonic_ns();
    while (done < target.size()) {
      const ssize_t count = ::pread(descriptor, target.data() + done, target.size() - done,
                                    static_cast<off_t>(event.offset + done));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail_errno(file, fmt::format("cannot be read at {}", event.offset + done));
      if (count == 0) break;
      done += static_cast<std::size_t>(count);
    }
    totals_.io_ns += monotonic_ns() - began;
    if (done < target.size())
      fail(file,
           fmt::format("the file ends at {}, and the trace reads it up to {}", event.offset + done,
                       event.offset + event.length),
           "it is made again with --make; with --processes, ranks do not wait for each other");
    ++totals_.reads;
    totals_.read_bytes += done;
    if (!options_.verifies) return;
    const std::size_t right =
        content_.mismatch(PlayedContent::start_of(file.path), event.offset, target);
    if (right != target.size())
      fail(file, fmt::format("wrong bytes were read at {}", event.offset + right),
           "--make has not made the file, or the bytes read are not those of the file");
  }

  void write(int descriptor, const PlayedFile& file, const TraceEvent& event) {
    std::span<char> bytes = buffer_.room(event.length);
    content_.fill(PlayedContent::start_of(file.path), event.offset, bytes);
    std::uint64_t offset = event.offset;
    const std::int64_t began = monotonic_ns();
    while (!bytes.empty()) {
      const ssize_t count =
          ::pwrite(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) fail_errno(file, fmt::format("cannot be written at {}", offset));
      bytes = bytes.subspan(static_cast<std::size_t>(count));
      offset += static_cast<std::uint64_t>(count);
    }
    totals_.io_ns += monotonic_ns() - began;
    ++totals_.writes;
    totals_.written_bytes += event.length;
  }

  const PlayOptions& options_;
  const PlayPlan& plan_;
  const PlayedFiles& files_;
  const Together& together_;
  const unsigned number_;
  const PlayedContent content_;
  CallBuffer buffer_;
  std::unordered_map<PlayedStream, int, PlayedStreamHash> open_;
  std::uint64_t first_ns_ = 0;
  PlayTotals totals_;
};

// What a process of a replay leaves behind, in memory that is shared with it.
struct Left {
  PlayTotals totals;
  bool is_done = false;
  bool has_failed = false;
  int exit_status = 0;
  std::array<char, 4096> message{};
  std::array<char, 256> remedy{};

  void fail(const std::string& what, const std::string& how, int status) {
    what.copy(message.data(), message.size() - 1);
    how.copy(remedy.data(), remedy.size() - 1);
    exit_status = status;
    has_failed = true;
  }
};

struct alignas(64) Shared {
  std::atomic<bool> must_stop{false};
};

class SharedMemory {
 public:
  explicit SharedMemory(std::size_t bytes)
      : bytes_(bytes),
        memory_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (memory_ == MAP_FAILED)
      throw Failure(fmt::format("no memory for the processes: {}", std::strerror(errno)),
                    "say fewer --processes");
  }
  ~SharedMemory() { ::munmap(memory_, bytes_); }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  void* get() const { return memory_; }

 private:
  const std::size_t bytes_;
  void* const memory_;
};

// In the child. It exits as programs do, so that the preload library sees its exit.
[[noreturn]] void play_part(TracePlayer& player, Left& left, std::atomic<bool>& must_stop) {
  (void)::prctl(PR_SET_PDEATHSIG, SIGTERM);
  try {
    left.totals = player.play();
  } catch (const Failure& failure) {
    left.fail(failure.what(), failure.remedy(), failure.exit_status());
    must_stop = true;
  } catch (const std::exception& problem) {
    left.fail(problem.what(), "", kExitInternal);
    must_stop = true;
  }
  left.is_done = true;
  std::exit(0);
}

void wait_for(const std::vector<pid_t>& children) {
  for (const pid_t child : children) {
    while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

PlayTotals play_in_processes(const PlayOptions& options, const PlayPlan& plan,
                             const PlayedFiles& files, unsigned processes) {
  const SharedMemory memory(sizeof(Shared) + processes * sizeof(Left));
  auto* const shared = new (memory.get()) Shared;
  auto* const lefts = new (shared + 1) Left[processes];
  const Together together{monotonic_ns(), processes, &shared->must_stop};
  std::vector<pid_t> children;
  for (unsigned number = 0; number < processes; ++number) {
    const pid_t child = ::fork();
    if (child == 0) {
      TracePlayer player(options, plan, files, together, number);
      play_part(player, lefts[number], shared->must_stop);
    }
    if (child < 0) {
      lefts[number].fail(
          fmt::format("process {} cannot be started: {}", number + 1, std::strerror(errno)),
          "say fewer --processes", kExitRefused);
      shared->must_stop = true;
      break;
    }
    children.push_back(child);
  }
  wait_for(children);
  PlayTotals totals;
  totals.processes = processes;
  for (unsigned number = 0; number < processes; ++number) {
    const Left& left = lefts[number];
    if (left.has_failed) throw Failure(left.message.data(), left.remedy.data(), left.exit_status);
    totals.add(left.totals);
  }
  if (!std::all_of(lefts, lefts + processes, [](const Left& left) { return left.is_done; }))
    throw Failure("a process of the replay was killed", "the accesses of the others are done");
  return totals;
}

// Each rank has a descriptor of its own.
void allow_descriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

void PlayTotals::add(const PlayTotals& other) {
  opens += other.opens;
  reads += other.reads;
  writes += other.writes;
  read_bytes += other.read_bytes;
  written_bytes += other.written_bytes;
  io_ns += other.io_ns;
  wall_ns = std::max(wall_ns, other.wall_ns);
}

PlayTotals play_trace(const PlayOptions& options, const PlayPlan& plan, const PlayedFiles& files) {
  allow_descriptors();
  const unsigned processes = std::clamp(options.processes, 1U, std::max(plan.processes, 1U));
  if (processes > 1) return play_in_processes(options, plan, files, processes);
  std::atomic<bool> must_stop{false};
  const Together together{monotonic_ns(), 1, &must_stop};
  return TracePlayer(options, plan, files, together, 0).play();
}

}  // namespace cairn::cli
