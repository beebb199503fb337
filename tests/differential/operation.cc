// SPDX-License-Identifier: Apache-2.0
#include "operation.h"

#include <array>
#include <charconv>
#include <sstream>

namespace cairn::differential {
namespace {

constexpr std::array<std::string_view, kKindCount> kNamesOfKinds = {
#define X(name, group, weight) #name,
    CAIRN_DIFFERENTIAL_KINDS(X)
#undef X
};
constexpr std::array<std::string_view, kKindCount> kClassesOfKinds = {
#define X(name, group, weight) #group,
    CAIRN_DIFFERENTIAL_KINDS(X)
#undef X
};
constexpr std::array<int, kKindCount> kWeights = {
#define X(name, group, weight) weight,
    CAIRN_DIFFERENTIAL_KINDS(X)
#undef X
};

bool in_list(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const auto comma = list.find(',');
    if (list.substr(0, comma) == word) return true;
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
  }
  return false;
}

// What the generator believes is open, so that most steps hit a live slot.
struct Believed {
  std::array<std::array<bool, kSlots>, kProcesses> slots{};
  std::array<std::array<bool, kStreams>, kProcesses> streams{};
  std::array<std::array<bool, kMappings>, kProcesses> mappings{};
};

template <std::size_t N>
std::int64_t pick(Random& random, const std::array<bool, N>& live, bool wanted) {
  for (int attempt = 0; attempt < 12; ++attempt) {
    const auto index = random.below(N);
    if (live[static_cast<std::size_t>(index)] == wanted) return index;
  }
  return random.below(N);
}

bool uses_stream(Kind kind) { return kind_class(kind) == "stdio"; }

bool uses_mapping(Kind kind) {
  return kind == Kind::map || kind == Kind::unmap || kind == Kind::map_read ||
         kind == Kind::map_write || kind == Kind::msync;
}

bool uses_name_first(Kind kind) {
  switch (kind) {
    case Kind::truncate:
    case Kind::stat:
    case Kind::lstat:
    case Kind::statx:
    case Kind::access:
    case Kind::chmod:
    case Kind::utimensat:
    case Kind::rename:
    case Kind::unlink:
    case Kind::link:
    case Kind::symlink:
    case Kind::readlink:
    case Kind::mkdir:
    case Kind::rmdir:
    case Kind::readdir:
    case Kind::whole:
      return true;
    default:
      return false;
  }
}

std::int64_t random_name(Random& random) {
  if (random.below(10) < 6) return random.below(kSharedNames);
  return random.below(kNames);
}

// Fills the operands; keeps `believed` in step with what the operation intends.
void fill(Random& random, Believed& believed, Operation& op) {
  const auto process = static_cast<std::size_t>(op.process < 0 ? 0 : op.process);
  op.seed = random.next();
  op.b = random_offset(random);
  op.c = random_length(random);
  op.d = random.below(1 << 20);
  if (uses_stream(op.kind)) {
    auto& live = believed.streams[process];
    const bool opens = op.kind == Kind::fopen || op.kind == Kind::fdopen;
    op.a = pick(random, live, !opens || random.one_in(4));
    if (opens) live[static_cast<std::size_t>(op.a)] = true;
    if (op.kind == Kind::fclose) live[static_cast<std::size_t>(op.a)] = false;
    if (op.c > 40000) op.c %= 40000;
    return;
  }
  auto& slots = believed.slots[process];
  if (uses_mapping(op.kind)) {
    auto& live = believed.mappings[process];
    op.a = pick(random, live, op.kind != Kind::map);
    if (op.kind == Kind::map) {
      op.d = op.d / kSlots * kSlots + pick(random, slots, true);
      live[static_cast<std::size_t>(op.a)] = true;
    }
    if (op.kind == Kind::unmap) live[static_cast<std::size_t>(op.a)] = false;
    return;
  }
  if (uses_name_first(op.kind)) {
    op.a = random_name(random);
    if (op.kind == Kind::rename || op.kind == Kind::link || op.kind == Kind::symlink)
      op.b = random_name(random);
    return;
  }
  const bool opens = op.kind == Kind::open || op.kind == Kind::tmpfile;
  op.a = pick(random, slots, !opens || random.one_in(4));
  if (opens) {
    op.b = random_name(random);
    slots[static_cast<std::size_t>(op.a)] = true;
  }
  if (op.kind == Kind::close) slots[static_cast<std::size_t>(op.a)] = false;
  if (op.kind == Kind::dup || op.kind == Kind::dup_fd) {
    op.b = pick(random, slots, false);
    slots[static_cast<std::size_t>(op.b)] = true;
  }
  if (op.kind == Kind::dup2 || op.kind == Kind::copy_range || op.kind == Kind::sendfile ||
      op.kind == Kind::splice || op.kind == Kind::share_extents || op.kind == Kind::move_extents)
    op.b = pick(random, slots, true);
  if (op.kind == Kind::same_file) op.b = random_name(random);
}

}  // namespace

std::string_view kind_name(Kind kind) { return kNamesOfKinds[static_cast<std::size_t>(kind)]; }
std::string_view kind_class(Kind kind) { return kClassesOfKinds[static_cast<std::size_t>(kind)]; }

std::string name_of(std::int64_t index, int process) {
  if (index < kSharedNames) return "s" + std::to_string(index);
  switch (index) {
    case 6:
    case 7:
      return "p" + std::to_string(process) + "_" + std::to_string(index - 6);
    case 8:
      return "d0/x0";
    case 9:
      return "d1/x1";
    case 10:
      return "d0";
    case 11:
      return "d1";
    case 12:
      return "l0";
    default:
      return "l1";
  }
}

std::int64_t random_offset(Random& random) {
  switch (random.below(8)) {
    case 0:
      return random.below(64);
    case 1:
    case 2:
      return random.below(24) * 65536 + random.below(9) - (random.one_in(2) ? 4 : 0) + 4;
    case 3:
      return random.below(64) * 4096 + random.below(5);
    case 4:
      return random.below(8) * 65536;
    case 5:
      return random.below(kFileBytesMax / 8);
    case 6:
      return random.below(200000);
    default:
      return random.one_in(12) ? random.below(kFileBytesMax) : random.below(70000);
  }
}

std::int64_t random_length(Random& random) {
  switch (random.below(10)) {
    case 0:
      return random.below(3);
    case 1:
    case 2:
      return 1 + random.below(512);
    case 3:
      return 4096;
    case 4:
      return 4090 + random.below(12);
    case 5:
      return random.below(20000);
    case 6:
      return 65536;
    case 7:
      return 65530 + random.below(12);
    default:
      return random.one_in(4) ? random.below(kTransferBytesMax) : random.below(9000);
  }
}

std::string to_line(const Operation& op) {
  std::ostringstream out;
  out << op.number << ' ' << op.process << ' ' << op.thread << ' ' << kind_name(op.kind) << ' '
      << op.a << ' ' << op.b << ' ' << op.c << ' ' << op.d << ' ' << op.seed;
  return out.str();
}

bool from_line(std::string_view line, Operation* op) {
  if (line.empty() || line[0] == '#') return false;
  std::istringstream in{std::string(line)};
  std::string name;
  if (!(in >> op->number >> op->process >> op->thread >> name >> op->a >> op->b >> op->c >> op->d >>
        op->seed))
    return false;
  for (int kind = 0; kind < kKindCount; ++kind) {
    if (kNamesOfKinds[static_cast<std::size_t>(kind)] == name) {
      op->kind = static_cast<Kind>(kind);
      return op->process >= -1 && op->process < kProcesses && op->thread >= 0 &&
             op->thread < kThreads;
    }
  }
  return false;
}

std::vector<Operation> generate(const GenerateOptions& options) {
  Random random(options.seed);
  std::array<int, kKindCount> weights = kWeights;
  std::int64_t total = 0;
  for (int kind = 0; kind < kKindCount; ++kind) {
    auto& weight = weights[static_cast<std::size_t>(kind)];
    const auto name = kNamesOfKinds[static_cast<std::size_t>(kind)];
    const auto group = kClassesOfKinds[static_cast<std::size_t>(kind)];
    if (!options.classes.empty() && !in_list(options.classes, group)) weight = 0;
    if (in_list(options.without, group) || in_list(options.without, name)) weight = 0;
    total += weight;
  }
  std::vector<Operation> result;
  if (total == 0) return result;
  Believed believed;
  for (int number = 0; number < options.operations; ++number) {
    Operation op;
    op.number = number;
    op.process = static_cast<int>(random.below(kProcesses));
    op.thread = static_cast<int>(random.below(kThreads));
    std::int64_t ticket = random.below(total);
    int kind = 0;
    while (ticket >= weights[static_cast<std::size_t>(kind)])
      ticket -= weights[static_cast<std::size_t>(kind++)];
    op.kind = static_cast<Kind>(kind);
    fill(random, believed, op);
    if (op.kind == Kind::burst) op.process = -1;
    result.push_back(op);
  }
  return result;
}

}  // namespace cairn::differential
