// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/doctor_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <linux/magic.h>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

#include "base/size_text.h"
#include "cli/configuration/configuration.h"
#include "cli/launch/elf_file.h"
#include "cli/launch/program_check.h"
#include "cli/launch/program_search.h"
#include "cli/node/run_directory.h"
#include "cli/terminal/failure.h"
#include "cli/terminal/output.h"

namespace cairn::cli {
namespace {

constexpr const char* kHugePageBenefit = "worth 10 to 25 % on every hit in RAM";
// close_range, openat2 and pidfds, which the service relies on, came by 5.9.
constexpr unsigned kKernelMajorMin = 5;
constexpr unsigned kKernelMinorMin = 9;
// A client keeps a private descriptor for each open file of the program, and some to spare.
constexpr rlim_t kOpenFilesWanted = 4096;
constexpr int kExitNotReady = 1;

std::string read_line(const std::string& path) {
  std::ifstream stream(path);
  std::string line;
  std::getline(stream, line);
  return line;
}

Finding examine_kernel() {
  utsname name{};
  ::uname(&name);
  unsigned major_version = 0;
  unsigned minor_version = 0;
  std::sscanf(name.release, "%u.%u", &major_version, &minor_version);
  const bool good = major_version > kKernelMajorMin ||
                    (major_version == kKernelMajorMin && minor_version >= kKernelMinorMin);
  return {good ? Verdict::kGood : Verdict::kBad, "kernel", fmt::format("Linux {}", name.release),
          good ? "" : "Cairn needs Linux 5.9 or newer"};
}

Finding examine_transparent_huge_pages(const MachineRoots& roots) {
  const std::string path = roots.sys + "/kernel/mm/transparent_hugepage/shmem_enabled";
  const std::string line = read_line(path);
  const size_t open = line.find('[');
  const size_t close = line.find(']');
  const std::string mode = open == std::string::npos || close == std::string::npos
                               ? ""
                               : line.substr(open + 1, close - open - 1);
  if (mode.empty()) {
    return {Verdict::kCouldBeBetter, "huge pages",
            "the kernel has no transparent huge pages for shared memory", ""};
  }
  if (mode == "never" || mode == "deny") {
    return {Verdict::kCouldBeBetter, "huge pages", fmt::format("shmem_enabled is \"{}\"", mode),
            fmt::format("as root: echo advise > {} ({})", path, kHugePageBenefit)};
  }
  return {Verdict::kGood, "huge pages",
          fmt::format("shmem_enabled is \"{}\": granted to the RAM tier", mode), ""};
}

Finding examine_hugetlb(const MachineRoots& roots) {
  std::ifstream meminfo(roots.proc + "/meminfo");
  std::map<std::string, uint64_t> values;
  std::string line;
  while (std::getline(meminfo, line)) {
    std::istringstream words(line);
    std::string key;
    uint64_t value = 0;
    if (words >> key >> value) values[key] = value;
  }
  const uint64_t free_bytes = values["HugePages_Free:"] * values["Hugepagesize:"] * 1024;
  if (free_bytes > 0) {
    return {Verdict::kGood, "reserved huge pages",
            fmt::format("{} free; use them with --huge-pages hugetlb", format_size(free_bytes)),
            ""};
  }
  return {Verdict::kGood, "reserved huge pages",
          "none; needed only for --huge-pages hugetlb (as root: sysctl vm.nr_hugepages=N)", ""};
}

Finding examine_memory(const MachineRoots& roots) {
  const MemoryState memory = read_memory_state(roots);
  const uint64_t capacity = default_ram_capacity(memory);
  std::string text = fmt::format("{} of {} available", format_size(memory.available_bytes),
                                 format_size(memory.total_bytes));
  if (memory.limit_bytes)
    text +=
        fmt::format(", limited to {} by {}", format_size(*memory.limit_bytes), memory.limit_file);
  text += fmt::format("; the RAM tier would be {}", format_size(capacity));
  const bool small = capacity < (uint64_t{64} << 20);
  return {small ? Verdict::kCouldBeBetter : Verdict::kGood, "memory", text,
          small ? "give the job more memory, or name a capacity with --ram" : ""};
}

Finding examine_memfd() {
  const int descriptor = ::memfd_create("cairn-doctor", MFD_CLOEXEC);
  if (descriptor < 0) {
    return {Verdict::kBad, "memfd", std::strerror(errno),
            "Cairn's shared memory needs memfd_create(2)"};
  }
  ::close(descriptor);
  return {Verdict::kGood, "memfd", "shared memory can be created", ""};
}

Finding examine_proc(const MachineRoots& roots) {
  struct statfs status{};
  const bool mounted = ::statfs(roots.proc.c_str(), &status) == 0 &&
                       status.f_type == PROC_SUPER_MAGIC &&
                       ::access((roots.proc + "/self/fd").c_str(), R_OK) == 0;
  return {mounted ? Verdict::kGood : Verdict::kBad, "/proc", mounted ? "mounted" : "not mounted",
          mounted ? "" : "mount it: mount -t proc proc /proc"};
}

Finding examine_io_uring(const MachineRoots& roots) {
  // An invalid call on purpose: EFAULT or EINVAL means that the kernel would take a valid one.
  ::syscall(__NR_io_uring_setup, 1, nullptr);
  const int error = errno;
  if (error == EFAULT || error == EINVAL) {
    return {Verdict::kGood, "io_uring", "available to the service; refused to programs in a run",
            ""};
  }
  const std::string switch_path = roots.proc + "/sys/kernel/io_uring_disabled";
  return {Verdict::kCouldBeBetter, "io_uring",
          fmt::format("not available ({})", std::strerror(error)),
          fmt::format("data moves between file tiers with ordinary calls; as root: echo 0 > {}",
                      switch_path)};
}

Finding examine_seccomp() {
  // Asks for the mode alone: EFAULT says that filters exist, EINVAL that they do not.
  const bool available = ::prctl(PR_SET_SECCOMP, 2, nullptr) != 0 && errno != EINVAL;
  return {available ? Verdict::kGood : Verdict::kCouldBeBetter, "seccomp",
          available ? "filters are available: io_uring can be refused to programs"
                    : "no filters: a program that uses io_uring on buffered files would get EBADF",
          available ? "" : "a kernel with CONFIG_SECCOMP_FILTER"};
}

Finding examine_open_files() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const bool good = limit.rlim_max >= kOpenFilesWanted;
  return {good ? Verdict::kGood : Verdict::kCouldBeBetter, "open files",
          fmt::format("limit {} (hard {})", limit.rlim_cur, limit.rlim_max),
          good ? ""
               : fmt::format(
                     "raise the hard limit to {} (limits.conf: nofile): each buffered file that is "
                     "open takes one descriptor more",
                     kOpenFilesWanted)};
}

Finding examine_run_root() {
  try {
    const std::string root = run_root_path();
    struct statfs status{};
    const std::string parent = root.substr(0, root.rfind('/'));
    const bool exists = ::access(root.c_str(), F_OK) == 0;
    if (exists) ensure_run_root(root);
    const std::string& place = exists ? root : parent;
    if (::access(place.c_str(), W_OK | X_OK) != 0) {
      return {Verdict::kBad, "run directory", fmt::format("{}: {}", place, std::strerror(errno)),
              "set CAIRN_RUN_ROOT to a directory of your own on a local file system"};
    }
    (void)::statfs(place.c_str(), &status);
    return {Verdict::kGood, "run directory", root, ""};
  } catch (const Failure& failure) {
    return {Verdict::kBad, "run directory", failure.what(), failure.remedy()};
  }
}

Finding examine_array_connector() {
  const ArrayConnector connector = find_array_connector();
  const bool is_good = connector.problem.empty();
  return {is_good ? Verdict::kGood : Verdict::kCouldBeBetter, "HDF5 connector",
          is_good ? connector.path : fmt::format("{} {}", connector.path, connector.problem),
          is_good ? "" : "HDF5 reads arrays itself, as bytes of buffered files"};
}

Finding examine_library() {
  try {
    return {Verdict::kGood, "library", preload_library_path(), ""};
  } catch (const Failure& failure) {
    return {Verdict::kBad, "library", failure.what(), failure.remedy()};
  }
}

std::vector<std::string> covered_symbols() {
  try {
    return read_elf_file(preload_library_path()).exported;
  } catch (const Failure&) {
    return {};
  }
}

// One line for each symbol, with the files that import it.
std::string symbols_text(const std::vector<UncoveredSymbol>& uncovered) {
  std::map<std::string, std::vector<std::string>> files_of;
  for (const UncoveredSymbol& symbol : uncovered) files_of[symbol.name].push_back(symbol.file);
  std::string text;
  for (const auto& [name, files] : files_of) {
    text += (text.empty() ? "" : ", ") + name + " (" + files.front() +
            (files.size() > 1 ? fmt::format(" and {} more", files.size() - 1) : "") + ")";
  }
  return text;
}

std::string findings_text(const std::vector<Finding>& findings) {
  static constexpr const char* kMarks[] = {"ok   ", "hint ", "BAD  "};
  size_t width = 0;
  for (const Finding& finding : findings) width = std::max(width, finding.subject.size());
  std::string text;
  for (const Finding& finding : findings) {
    text += fmt::format("{}{:<{}}  {}\n", kMarks[static_cast<size_t>(finding.verdict)],
                        finding.subject, width, finding.text);
    if (!finding.remedy.empty())
      text += fmt::format("     {:<{}}  -> {}\n", "", width, finding.remedy);
  }
  return text;
}

bool any_bad(const std::vector<Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& finding) { return finding.verdict == Verdict::kBad; });
}

}  // namespace

std::vector<Finding> examine_machine(const MachineRoots& roots) {
  return {examine_kernel(),        examine_memory(roots), examine_transparent_huge_pages(roots),
          examine_hugetlb(roots),  examine_memfd(),       examine_proc(roots),
          examine_io_uring(roots), examine_seccomp(),     examine_open_files(),
          examine_run_root(),      examine_library(),     examine_array_connector()};
}

std::vector<Finding> examine_program(const std::string& name) {
  const FoundProgram program = find_program(name);
  if (program.path.empty()) throw Failure(program.message, "", program.exit_status);
  const ProgramCheck check = check_program(program.path, covered_symbols());
  std::vector<Finding> findings;
  for (const std::string& script : check.script_chain) {
    findings.push_back(
        {Verdict::kGood, "script", fmt::format("{} is run by {}", script, check.path), ""});
  }
  if (!check.can_be_buffered) {
    findings.push_back(
        {Verdict::kBad, "program", fmt::format("{} {}", check.path, check.reason),
         "it runs correctly on the backing store, unbuffered; what others wrote is flushed "
         "before it starts"});
    return findings;
  }
  findings.push_back(
      {Verdict::kGood, "program",
       fmt::format("{}: dynamically linked with glibc, its I/O can be buffered", check.path), ""});
  for (const std::string& note : check.notes)
    findings.push_back({Verdict::kCouldBeBetter, "note", note, ""});
  if (check.uncovered.empty()) {
    findings.push_back({Verdict::kGood, "calls",
                        fmt::format("every I/O call that it and its {} libraries import is covered",
                                    check.libraries_checked),
                        ""});
  } else {
    findings.push_back(
        {Verdict::kCouldBeBetter, "calls", "not covered: " + symbols_text(check.uncovered),
         "such a call on a buffered file's descriptor fails with EBADF, never with old data; "
         "leave files out of it with --exclude"});
  }
  findings.push_back(
      {Verdict::kGood, "limits",
       "libraries loaded later (plug-ins) and programs that it starts are not part of this "
       "check",
       ""});
  return findings;
}

int run_doctor(const std::vector<std::string>& command_line) {
  if (!command_line.empty()) {
    const std::vector<Finding> findings = examine_program(command_line.front());
    print(findings_text(findings));
    return any_bad(findings) ? kExitNotReady : kExitOk;
  }
  const std::vector<Finding> findings = examine_machine();
  print(findings_text(findings));
  print(any_bad(findings) ? "this machine is NOT ready for cairn run\n"
                          : "this machine is ready for cairn run\n");
  return any_bad(findings) ? kExitNotReady : kExitOk;
}

}  // namespace cairn::cli
