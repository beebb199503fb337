// SPDX-License-Identifier: Apache-2.0
#include "frontends/paths/file_handling.h"

#include <fcntl.h>
#include <limits.h>

#include "base/leading_number.h"
#include "frontends/paths/path_filter.h"

namespace cairn {
namespace {

constinit std::uint32_t run_number = 0;
constinit std::uint32_t run_bits = 0;
constinit bool has_run_bits = false;

ObjectHandling default_handling(const NodeMemory& memory) {
  return has_run_bits ? ObjectHandling::from_bits(run_bits) : memory.rules().default_handling();
}

}  // namespace

void FileHandling::configure(const char* bits, std::uint32_t run) {
  run_number = run;
  has_run_bits = bits != nullptr && *bits != '\0';
  run_bits = has_run_bits ? leading_number(bits, 16) : 0;
  run_bits &= ObjectHandling::kMask | ObjectHandling::kDurabilityBit;
}

ObjectHandling FileHandling::of(const NodeMemory& memory, int fd, std::uint64_t size, int flags) {
  const ObjectHandling otherwise = default_handling(memory);
  if (memory.rules().is_empty()) return otherwise;
  PathFilter::resolve();
  char path[PATH_MAX];
  RuleQuestion question;
  question.below = PathFilter::place_of(fd, path, sizeof path);
  if (question.below == nullptr) return otherwise;
  question.path = path;
  question.size = size;
  question.run = run_number;
  const int access = flags & O_ACCMODE;
  question.reads = access != O_WRONLY;
  question.writes = access != O_RDONLY;
  return memory.rules().decide(question, otherwise);
}

}  // namespace cairn
