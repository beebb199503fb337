// SPDX-License-Identifier: Apache-2.0
#include "cli/launch/program_check.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>
#include <string_view>

#include "cli/launch/program_search.h"
#include "cli/terminal/paths.h"

namespace cairn::cli {
namespace {

// Scripts run by scripts: the kernel allows five.
constexpr size_t kScriptDepthMax = 5;

// Without calls that work on a buffered file unhooked: fclose acts on a stream of ours, msync on a
// mapping of the kernel's own, aio_return on a request that was hooked when it was made; fork is
// followed otherwise.
constexpr std::string_view kDataSymbols =
    "__fxstat __fxstat64 __fxstatat __fxstatat64 __lxstat __lxstat64 __open64_2 __open_2 "
    "__openat64_2 __openat_2 __pread64_chk __pread_chk __read_chk __xstat __xstat64 "
    "aio_fsync aio_fsync64 aio_read aio_read64 "
    "aio_write aio_write64 close "
    "close_range closefrom copy_file_range creat creat64 dlopen dup dup2 dup3 execl execle "
    "execlp execv execve execveat execvp execvpe fallocate fallocate64 fcntl fcntl64 "
    "fdatasync fdopen fexecve flock fopen fopen64 freopen freopen64 fstat fstat64 fstatat "
    "fstatat64 fsync ftruncate ftruncate64 futimens futimes futimesat lio_listio "
    "lio_listio64 lockf lockf64 lseek lseek64 lstat lstat64 lutimes mkostemp mkostemp64 "
    "mkostemps mkostemps64 mkstemp mkstemp64 mkstemps mkstemps64 mmap mmap64 "
    "open open64 openat openat64 popen posix_fadvise posix_fadvise64 posix_fallocate "
    "posix_fallocate64 posix_spawn posix_spawnp pread pread64 preadv preadv2 preadv64 "
    "preadv64v2 pwrite pwrite64 pwritev pwritev2 pwritev64 pwritev64v2 read readahead readv "
    "remove rename renameat renameat2 sendfile sendfile64 splice stat stat64 statx sync "
    "sync_file_range syncfs system tmpfile tmpfile64 truncate truncate64 unlink unlinkat "
    "utime utimensat utimes write writev ";

bool contains(const std::vector<std::string>& sorted, const char* name) {
  return std::binary_search(sorted.begin(), sorted.end(), name);
}

// The program that runs a script: its interpreter, or the one that `env` would start.
std::string interpreter_of(const ElfFile& script) {
  if (base_name(script.script_interpreter) != "env") return script.script_interpreter;
  std::string argument = script.script_argument;
  if (argument.rfind("-S", 0) == 0) argument.erase(0, argument.find_first_not_of(' ', 2));
  const FoundProgram found = find_program(argument.substr(0, argument.find(' ')));
  return found.path.empty() ? script.script_interpreter : found.path;
}

// The kernel runs these with AT_SECURE, and the dynamic linker then ignores LD_PRELOAD.
std::string secure_reason(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return "";
  if ((status.st_mode & S_ISUID) != 0 && status.st_uid != ::geteuid()) {
    return "is set-user-id, and such programs ignore LD_PRELOAD";
  }
  if ((status.st_mode & S_ISGID) != 0 && status.st_gid != ::getegid()) {
    return "is set-group-id, and such programs ignore LD_PRELOAD";
  }
  if (::geteuid() != 0 && ::getxattr(path.c_str(), "security.capability", nullptr, 0) > 0) {
    return "has file capabilities, and such programs ignore LD_PRELOAD";
  }
  return "";
}

std::string unloadable_reason(const std::string& path, const ElfFile& file) {
  if (file.kind == FileKind::kMissing) {
    return fmt::format("cannot be read ({})", std::strerror(file.error));
  }
  if (file.kind != FileKind::kElf) return "is no ELF program";
  if (!file.same_class) return "is for another kind of machine than the library (32-bit, perhaps)";
  if (file.interpreter.empty()) {
    return file.has_go_build_info ? "is a static Go program" : "is statically linked";
  }
  if (file.has_go_build_info) return "is a Go program, which makes its system calls without libc";
  if (base_name(file.interpreter).rfind("ld-musl", 0) == 0) {
    return "uses the musl C library, and the library is made for glibc";
  }
  return secure_reason(path);
}

// Follows scripts to the file that decides, which it reads into `file`.
ProgramCheck check_deciding_file(const std::string& path, ElfParts parts, ElfFile* file) {
  ProgramCheck check;
  check.path = path;
  *file = read_elf_file(check.path, parts);
  while (file->kind == FileKind::kScript && check.script_chain.size() < kScriptDepthMax) {
    check.script_chain.push_back(check.path);
    check.path = interpreter_of(*file);
    *file = read_elf_file(check.path, parts);
  }
  check.reason = unloadable_reason(check.path, *file);
  check.can_be_buffered = check.reason.empty();
  return check;
}

// "libhdf5.so.103 => /usr/lib/x86_64-linux-gnu/libhdf5.so.103 (0x7f...)"
std::vector<std::string> parse_library_list(const std::string& text) {
  std::vector<std::string> libraries;
  size_t start = 0;
  while (start < text.size()) {
    const size_t end = std::min(text.find('\n', start), text.size());
    const std::string line = text.substr(start, end - start);
    const size_t arrow = line.find(" => /");
    if (arrow != std::string::npos) {
      const size_t path_start = arrow + 4;
      libraries.push_back(line.substr(path_start, line.find(" (", path_start) - path_start));
    }
    start = end + 1;
  }
  return libraries;
}

// Asks the program's own dynamic linker which libraries it would load; the program itself does not
// run.
std::vector<std::string> list_libraries(const std::string& interpreter, const std::string& path) {
  std::array<int, 2> pipe_ends = {-1, -1};
  if (::pipe2(pipe_ends.data(), O_CLOEXEC) != 0) return {};
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(pipe_ends[1], STDOUT_FILENO);
    const int null_device = ::open("/dev/null", O_WRONLY);
    ::dup2(null_device, STDERR_FILENO);
    ::unsetenv("LD_PRELOAD");
    ::execl(interpreter.c_str(), interpreter.c_str(), "--list", path.c_str(), nullptr);
    ::_exit(127);
  }
  ::close(pipe_ends[1]);
  std::string text;
  std::array<char, 4096> buffer{};
  ssize_t count = 0;
  while ((count = ::read(pipe_ends[0], buffer.data(), buffer.size())) > 0 ||
         (count < 0 && errno == EINTR)) {
    if (count > 0) text.append(buffer.data(), static_cast<size_t>(count));
  }
  ::close(pipe_ends[0]);
  if (child > 0) ::waitpid(child, nullptr, 0);
  return parse_library_list(text);
}

// glibc's own libraries call each other below any interception; what matters there is known and
// handled.
bool is_libc_part(const std::string& library) {
  static constexpr std::array<const char*, 9> kParts = {"libc.so",       "ld-linux",     "libm.so",
                                                        "libpthread.so", "libdl.so",     "librt.so",
                                                        "libutil.",      "libresolv.so", "libnss"};
  const std::string name = base_name(library);
  return std::any_of(kParts.begin(), kParts.end(),
                     [&name](const char* part) { return name.rfind(part, 0) == 0; });
}

void note_special_imports(const ElfFile& file, const std::string& name,
                          const std::vector<std::string>& covered, ProgramCheck* check) {
  const bool uses_uring =
      std::any_of(file.needed.begin(), file.needed.end(),
                  [](const std::string& library) { return library.rfind("liburing", 0) == 0; });
  if (uses_uring || contains(file.imported, "io_uring_setup")) {
    check->notes.push_back(name +
                           " uses io_uring: `cairn run` refuses it with ENOSYS, so that the "
                           "program takes its fallback");
  }
  if (contains(file.imported, "io_submit") || contains(file.imported, "io_setup")) {
    check->notes.push_back(name +
                           " uses the kernel's asynchronous I/O (libaio), which fails with "
                           "EBADF on buffered files; exclude them with --exclude");
  }
  if (contains(file.imported, "syscall") && !contains(covered, "syscall")) {
    check->notes.push_back(
        name +
        " imports syscall(): system calls made that way bypass the library; on a "
        "buffered file's descriptor they fail with EBADF, not silently");
  }
}

// HDF5 counts in the name of its library: 103 and 104 are 1.10, 200 is 1.12, 310 is 1.14
// (config/lt_vers.am of its sources). 0: `name` is another library's.
unsigned hdf5_interface(const std::string& name) {
  static constexpr const char* kLibraries[] = {"libhdf5.so.", "libhdf5_serial.so.",
                                               "libhdf5_openmpi.so.", "libhdf5_mpich.so."};
  for (const std::string library : kLibraries) {
    if (name.rfind(library, 0) != 0) continue;
    return static_cast<unsigned>(std::strtoul(name.c_str() + library.size(), nullptr, 10));
  }
  return 0;
}

bool is_old_hdf5(const std::string& name) {
  constexpr unsigned kLoadsConnectors = 300;
  const unsigned interface = hdf5_interface(name);
  return interface != 0 && interface < kLoadsConnectors;
}

void note_old_hdf5(const std::string& name, ProgramCheck* check) {
  if (!is_old_hdf5(name)) return;
  check->notes.push_back(name +
                         " is HDF5 older than 1.14, which loads no connector: its files are "
                         "buffered as bytes, without chunks of arrays");
}

void check_symbols(const ElfFile& file, const std::string& name,
                   const std::vector<std::string>& covered, ProgramCheck* check) {
  note_special_imports(file, name, covered, check);
  if (covered.empty()) return;
  for (std::string& symbol : uncovered_symbols(file.imported, covered)) {
    check->uncovered.push_back({std::move(symbol), name});
  }
}

}  // namespace

const std::vector<std::string>& data_symbols() {
  static const std::vector<std::string> kSymbols = [] {
    std::vector<std::string> symbols;
    std::string_view rest = kDataSymbols;
    for (size_t end = 0; (end = rest.find(' ')) != std::string_view::npos;
         rest.remove_prefix(end + 1))
      symbols.emplace_back(rest.substr(0, end));
    std::sort(symbols.begin(), symbols.end());
    return symbols;
  }();
  return kSymbols;
}

std::vector<std::string> uncovered_symbols(const std::vector<std::string>& imported,
                                           const std::vector<std::string>& covered) {
  std::vector<std::string> relevant;
  std::set_intersection(imported.begin(), imported.end(), data_symbols().begin(),
                        data_symbols().end(), std::back_inserter(relevant));
  std::vector<std::string> uncovered;
  std::set_difference(relevant.begin(), relevant.end(), covered.begin(), covered.end(),
                      std::back_inserter(uncovered));
  return uncovered;
}

ProgramCheck check_loading(const std::string& path) {
  ElfFile ignored;
  return check_deciding_file(path, ElfParts::kHeaders, &ignored);
}

std::string old_hdf5_of(const std::string& path) {
  ElfFile file;
  const ProgramCheck check = check_deciding_file(path, ElfParts::kHeaders, &file);
  if (!check.can_be_buffered) return "";
  const std::vector<std::string> libraries = list_libraries(file.interpreter, check.path);
  const auto found = std::ranges::find_if(
      libraries, [](const std::string& library) { return is_old_hdf5(base_name(library)); });
  return found == libraries.end() ? "" : base_name(*found);
}

ProgramCheck check_program(const std::string& path, const std::vector<std::string>& covered) {
  ElfFile file;
  ProgramCheck check = check_deciding_file(path, ElfParts::kAll, &file);
  if (!check.can_be_buffered) return check;
  check_symbols(file, base_name(check.path), covered, &check);
  for (const std::string& library : list_libraries(file.interpreter, check.path)) {
    if (is_libc_part(library)) continue;
    ++check.libraries_checked;
    note_old_hdf5(base_name(library), &check);
    check_symbols(read_elf_file(library), base_name(library), covered, &check);
  }
  return check;
}

}  // namespace cairn::cli
