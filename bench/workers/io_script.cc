// SPDX-License-Identifier: Apache-2.0
//
// A program that is written down: processes that open, read, write, compute and synchronise as a
// script says, and compare every byte that they read.
//   io_script DIRECTORY SCRIPT
// A line of the script is one call. "process" begins the next process; all run at the same time.
//   open NAME r|w|u      to read, to write anew, to update (it is made if it is not there)
//   read NAME OFFSET LENGTH / write NAME OFFSET LENGTH     one call of at most 4 MiB
//   fsync NAME / close NAME
//   sleep MICROSECONDS   computes
// A file has the same content whatever wrote it, and another content than the files of other names.
// Prints {"io_ns", "wall_ns", "fsyncs"}: the time of the slowest process inside its calls.
#include <sys/mman.h>
#include <sys/wait.h>

#include <fstream>
#include <map>
#include <sstream>

#include "timed_file.h"

namespace {

using worker::require;

struct Step {
  std::string verb;
  std::string name;
  uint64_t offset = 0;
  uint64_t length = 0;
};
using Steps = std::vector<Step>;

Step step_of(const std::string& line) {
  std::istringstream words(line);
  Step step;
  words >> step.verb;
  if (step.verb == "sleep") {
    words >> step.length;
  } else if (step.verb != "process") {
    words >> step.name;
  }
  if (step.verb == "read" || step.verb == "write") words >> step.offset >> step.length;
  require(!words.fail() && step.length <= uint64_t{1} << 32, "not a line of a script: " + line);
  return step;
}

std::vector<Steps> read_script(const std::string& path) {
  std::ifstream file(path);
  std::vector<Steps> processes;
  for (std::string line; std::getline(file, line);) {
    Step step = step_of(line);
    if (step.verb == "open") {
      step.length = line.back() == 'r'   ? O_RDONLY
                    : line.back() == 'w' ? O_WRONLY | O_CREAT | O_TRUNC
                                         : O_RDWR | O_CREAT;
    }
    if (step.verb == "process") processes.emplace_back();
    require(!processes.empty(), "a script begins with the word process");
    if (step.verb != "process") processes.back().push_back(std::move(step));
  }
  require(!processes.empty(), "cannot read " + path);
  return processes;
}

// Chooses the bytes of a file; two names with the same one are as unlikely as harmless.
uint64_t number_of(const std::string& name) {
  uint64_t number = 0;
  for (const char letter : name) number = number * 31 + static_cast<unsigned char>(letter);
  return number % 4096;
}

class Program {
 public:
  explicit Program(std::string directory) : directory_(std::move(directory)) {}

  int64_t run(const Steps& steps) {
    for (const Step& step : steps) take(step);
    files_.clear();  // what the script has left open
    return io_ns_;
  }

 private:
  void take(const Step& step) {
    if (step.verb == "sleep") {
      usleep(static_cast<useconds_t>(step.length));
    } else if (step.verb == "open") {
      files_.try_emplace(step.name, directory_ + "/" + step.name, static_cast<int>(step.length),
                         &io_ns_);
    } else {
      const auto file = files_.find(step.name);
      if (file == files_.end()) worker::fail("not open: " + step.name);
      act(step, &file->second);
      if (step.verb == "close") files_.erase(file);
    }
  }

  void act(const Step& step, worker::TimedFile* file) {
    const uint64_t start = worker::content_start(number_of(step.name));
    if (step.verb == "read") file->read(content_, start, step.offset, step.length, step.length);
    if (step.verb == "write") file->write(content_, start, step.offset, step.length, step.length);
    if (step.verb == "fsync") file->sync();
  }

  std::string directory_;
  worker::Content content_{0};
  std::map<std::string, worker::TimedFile> files_;
  int64_t io_ns_ = 0;
};

}  // namespace

int main(int count, char** words) {
  const worker::Options options(count, words);
  const std::vector<Steps> processes = read_script(options.positional(1));
  void* memory = mmap(nullptr, sizeof(int64_t) * processes.size(), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  require(memory != MAP_FAILED, "mmap");
  auto* const times = static_cast<int64_t*>(memory);
  const int64_t begin = worker::now_ns();
  for (size_t index = 0; index < processes.size(); ++index) {
    const pid_t child = fork();
    require(child >= 0, "fork");
    if (child != 0) continue;
    times[index] = Program(options.positional(0)).run(processes[index]);
    return 0;
  }
  bool has_failed = false;
  for (size_t index = 0; index < processes.size(); ++index) {
    int status = 0;
    require(wait(&status) > 0, "wait");
    has_failed |= status != 0;
  }
  if (has_failed) worker::fail("a process failed");
  long fsyncs = 0;
  for (const Steps& steps : processes)
    fsyncs += std::count_if(steps.begin(), steps.end(),
                            [](const Step& step) { return step.verb == "fsync"; });
  printf("{\"io_ns\": %ld, \"wall_ns\": %ld, \"fsyncs\": %ld}\n",
         *std::max_element(times, times + processes.size()), worker::now_ns() - begin, fsyncs);
  return 0;
}
