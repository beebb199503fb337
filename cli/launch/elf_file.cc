// SPDX-License-Identifier: Apache-2.0
#include "cli/launch/elf_file.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>

namespace cairn::cli {
namespace {

#if defined(__x86_64__)
constexpr uint16_t kOwnMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint16_t kOwnMachine = EM_AARCH64;
#else
constexpr uint16_t kOwnMachine = EM_NONE;
#endif

// A program with more than this many sections, segments or symbols is taken as damaged.
constexpr size_t kTableEntriesMax = size_t{1} << 22;
constexpr size_t kScriptLineSizeMax = 256;

// Reads tables of a file in memory with every access checked.
class ElfReader {
 public:
  ElfReader(const unsigned char* bytes, size_t size, ElfParts parts)
      : bytes_(bytes), size_(size), parts_(parts) {}

  ElfFile read() {
    if (size_ >= 2 && bytes_[0] == '#' && bytes_[1] == '!') {
      read_script();
    } else if (size_ >= EI_NIDENT && std::memcmp(bytes_, ELFMAG, SELFMAG) == 0) {
      file_.kind = FileKind::kElf;
      read_header();
    } else {
      file_.kind = FileKind::kUnknown;
    }
    return std::move(file_);
  }

 private:
  // A copy of the T at `offset`: the file's tables need not be aligned.
  template <typename T>
  std::optional<T> at(uint64_t offset) {
    T value;
    if (offset > size_ || size_ - offset < sizeof(T)) {
      file_.is_damaged = true;
      return std::nullopt;
    }
    std::memcpy(&value, bytes_ + offset, sizeof(T));
    return value;
  }

  std::string text_at(uint64_t offset, uint64_t size_max) {
    if (offset >= size_) {
      file_.is_damaged = true;
      return "";
    }
    const auto* start = reinterpret_cast<const char*>(bytes_ + offset);
    return {start, ::strnlen(start, std::min<uint64_t>(size_max, size_ - offset))};
  }

  void read_script() {
    file_.kind = FileKind::kScript;
    const auto* text = reinterpret_cast<const char*>(bytes_);
    std::string_view line(text + 2, std::min(size_, kScriptLineSizeMax) - 2);
    line = line.substr(0, line.find('\n'));
    const auto skip_blanks = [&line] {
      while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
    };
    skip_blanks();
    const size_t end = std::min(line.find_first_of(" \t"), line.size());
    file_.script_interpreter = line.substr(0, end);
    line.remove_prefix(end);
    skip_blanks();
    file_.script_argument = line;
    while (!file_.script_argument.empty() && file_.script_argument.back() <= ' ') {
      file_.script_argument.pop_back();
    }
  }

  void read_header() {
    const unsigned char own_order =
        __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
    // e_machine lies at the same place in both classes.
    file_.machine = at<uint16_t>(offsetof(Elf64_Ehdr, e_machine)).value_or(0);
    file_.same_class = bytes_[EI_CLASS] == ELFCLASS64 && bytes_[EI_DATA] == own_order &&
                       file_.machine == kOwnMachine;
    if (bytes_[EI_CLASS] != ELFCLASS64 || bytes_[EI_DATA] != own_order) return;
    const auto header = at<Elf64_Ehdr>(0);
    if (!header) return;
    read_segments(*header);
    read_sections(*header);
  }

  void read_segments(const Elf64_Ehdr& header) {
    if (header.e_phentsize != sizeof(Elf64_Phdr)) return;
    for (size_t index = 0; index < header.e_phnum; ++index) {
      const auto segment = at<Elf64_Phdr>(header.e_phoff + index * sizeof(Elf64_Phdr));
      if (!segment) return;
      if (segment->p_type == PT_INTERP) {
        file_.interpreter = text_at(segment->p_offset, segment->p_filesz);
      }
      if (segment->p_type == PT_DYNAMIC) dynamic_ = *segment;
    }
    for (size_t index = 0; index < header.e_phnum; ++index) {
      const auto segment = at<Elf64_Phdr>(header.e_phoff + index * sizeof(Elf64_Phdr));
      if (segment && segment->p_type == PT_LOAD) loads_.push_back(*segment);
    }
    read_needed();
  }

  // The place in the file of an address in memory.
  std::optional<uint64_t> offset_of(uint64_t address) const {
    for (const Elf64_Phdr& load : loads_) {
      if (address >= load.p_vaddr && address - load.p_vaddr < load.p_filesz) {
        return load.p_offset + (address - load.p_vaddr);
      }
    }
    return std::nullopt;
  }

  void read_needed() {
    if (!dynamic_) return;
    std::vector<uint64_t> names;
    std::optional<uint64_t> strings;
    const size_t count =
        std::min<uint64_t>(dynamic_->p_filesz / sizeof(Elf64_Dyn), kTableEntriesMax);
    for (size_t index = 0; index < count; ++index) {
      const auto entry = at<Elf64_Dyn>(dynamic_->p_offset + index * sizeof(Elf64_Dyn));
      if (!entry || entry->d_tag == DT_NULL) break;
      if (entry->d_tag == DT_NEEDED) names.push_back(entry->d_un.d_val);
      if (entry->d_tag == DT_STRTAB) strings = offset_of(entry->d_un.d_ptr);
    }
    if (!strings) return;
    for (const uint64_t name : names) file_.needed.push_back(text_at(*strings + name, 4096));
  }

  void read_sections(const Elf64_Ehdr& header) {
    if (header.e_shentsize != sizeof(Elf64_Shdr)) return;
    std::vector<Elf64_Shdr> sections;
    for (size_t index = 0; index < header.e_shnum; ++index) {
      const auto section = at<Elf64_Shdr>(header.e_shoff + index * sizeof(Elf64_Shdr));
      if (!section) return;
      sections.push_back(*section);
    }
    if (header.e_shstrndx >= sections.size()) return;
    const Elf64_Shdr& names = sections[header.e_shstrndx];
    for (const Elf64_Shdr& section : sections) {
      const std::string name = text_at(names.sh_offset + section.sh_name, 64);
      if (name == ".go.buildinfo" || name == ".note.go.buildid") file_.has_go_build_info = true;
      if (parts_ == ElfParts::kHeaders) continue;
      if (section.sh_type == SHT_DYNSYM && section.sh_link < sections.size()) {
        read_symbols(section, sections[section.sh_link]);
      }
    }
    std::sort(file_.imported.begin(), file_.imported.end());
    std::sort(file_.exported.begin(), file_.exported.end());
  }

  void read_symbols(const Elf64_Shdr& symbols, const Elf64_Shdr& strings) {
    const size_t count = std::min<uint64_t>(symbols.sh_size / sizeof(Elf64_Sym), kTableEntriesMax);
    for (size_t index = 1; index < count; ++index) {
      const auto symbol = at<Elf64_Sym>(symbols.sh_offset + index * sizeof(Elf64_Sym));
      if (!symbol) return;
      const std::string name = text_at(strings.sh_offset + symbol->st_name, 1024);
      if (name.empty()) continue;
      if (symbol->st_shndx == SHN_UNDEF) {
        file_.imported.push_back(name);
      } else {
        file_.exported.push_back(name);
      }
    }
  }

  const unsigned char* bytes_;
  const size_t size_;
  const ElfParts parts_;
  ElfFile file_;
  std::optional<Elf64_Phdr> dynamic_;
  std::vector<Elf64_Phdr> loads_;
};

}  // namespace

ElfFile parse_elf(const unsigned char* bytes, size_t size, ElfParts parts) {
  return ElfReader(bytes, size, parts).read();
}

ElfFile read_elf_file(const std::string& path, ElfParts parts) {
  ElfFile failed;
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status{};
  if (descriptor < 0 || ::fstat(descriptor, &status) != 0) {
    failed.error = errno;
    if (descriptor >= 0) ::close(descriptor);
    return failed;
  }
  const auto size = static_cast<size_t>(status.st_size);
  if (!S_ISREG(status.st_mode) || size == 0) {
    ::close(descriptor);
    failed.kind = FileKind::kUnknown;
    return failed;
  }
  void* bytes = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  failed.error = errno;
  ::close(descriptor);
  if (bytes == MAP_FAILED) return failed;
  ElfFile file = parse_elf(static_cast<const unsigned char*>(bytes), size, parts);
  ::munmap(bytes, size);
  return file;
}

}  // namespace cairn::cli
