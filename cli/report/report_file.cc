// SPDX-License-Identifier: Apache-2.0
#include "cli/report/report_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "cli/report/page.h"
#include "cli/terminal/failure.h"
#include "cli/terminal/output.h"

namespace cairn::cli {
namespace {

constexpr size_t kHeadBytes = 512;

[[noreturn]] void fail(const std::string& option, const std::string& path, const std::string& why,
                       const std::string& remedy) {
  throw Failure(fmt::format("{} {}: {}", option, printable(path), why), remedy);
}

bool is_page_of_ours(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  char head[kHeadBytes];
  const ssize_t got = ::read(file, head, sizeof head);
  ::close(file);
  return got > 0 &&
         std::string_view(head, static_cast<size_t>(got)).find(kPageMark) != std::string_view::npos;
}

// What a program that opens `path` to write would make or change. Links that lead in a circle, or
// too far, stay as they are: to open them fails as it should.
std::string target_of_links(const std::string& path) {
  constexpr int kLinksMax = 40;  // path_resolution(7)
  std::string target = path;
  for (int link = 0; link < kLinksMax; ++link) {
    char text[PATH_MAX];
    const ssize_t length = ::readlink(target.c_str(), text, sizeof text);
    if (length <= 0 || static_cast<size_t>(length) == sizeof text) return target;
    const std::string next(text, static_cast<size_t>(length));
    const size_t slash = target.rfind('/');
    const bool is_beside = next.front() != '/' && slash != std::string::npos;
    target = is_beside ? target.substr(0, slash + 1) + next : next;
  }
  return path;
}

std::string fresh_name(const std::string& path) {
  return fmt::format("{}.new-{}", path, ::getpid());
}

}  // namespace

void check_report_place(const std::string& option, const std::string& path, bool force) {
  if (path.empty()) fail(option, "\"\"", "no name of a file", "name a file, such as run.html");
  struct stat status{};
  const bool is_there = ::stat(path.c_str(), &status) == 0;
  if (!is_there && errno != ENOENT)
    fail(option, path, std::strerror(errno), "name a file that you may write");
  if (is_there) {
    if (S_ISDIR(status.st_mode))
      fail(option, path, "is a directory", "name a file in it, such as " + path + "/run.html");
    if (!S_ISREG(status.st_mode)) fail(option, path, "is no plain file", "name another file");
    if (status.st_size != 0 && !force && !is_page_of_ours(path))
      fail(option, path, "exists and is not a report of Cairn",
           "name another file, or add --force to replace it");
  }
  const std::string fresh = fresh_name(target_of_links(path));
  const int file = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) fail(option, path, std::strerror(errno), "name a file that you may write");
  ::close(file);
  (void)::unlink(fresh.c_str());
}

void write_report_file(const std::string& option, const std::string& path, const std::string& text,
                       const std::string& remedy) {
  CAIRN_CHECK(!text.empty());
  const std::string target = target_of_links(path);
  const std::string fresh = fresh_name(target);
  const int file = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) fail(option, path, std::strerror(errno), remedy);
  bool is_written = write_fully(file, text);
  int error = errno;
  // A file system that takes bytes and stores them later may say here that it could not.
  if (::close(file) != 0 && is_written) {
    is_written = false;
    error = errno;
  }
  if (is_written && ::rename(fresh.c_str(), target.c_str()) == 0) return;
  const int reason = is_written ? errno : error;
  (void)::unlink(fresh.c_str());
  fail(option, path, std::strerror(reason), remedy);
}

}  // namespace cairn::cli
