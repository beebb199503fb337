// SPDX-License-Identifier: Apache-2.0
//
// Many small files: creates and writes each, asks for each one's status, opens and closes each, and
// removes each. Prints the nanoseconds per file of each phase.
#include <string>

#include "worker.h"

namespace {

constexpr size_t kFileBytes = 4096;

std::string path_of(const std::string& directory, unsigned file) {
  return directory + "/file-" + std::to_string(file);
}

template <typename Call>
double timed(unsigned files, Call&& call) {
  const int64_t began = worker::now_ns();
  for (unsigned file = 0; file < files; ++file) call(file);
  return static_cast<double>(worker::now_ns() - began) / files;
}

void check(const std::string& directory, unsigned files, const worker::Content& content) {
  worker::Buffer seen(kFileBytes);
  for (unsigned file = 0; file < files; file += 97) {
    const int fd = open(path_of(directory, file).c_str(), O_RDONLY);
    worker::require(fd >= 0, "open to check");
    worker::require(read(fd, seen.data(), kFileBytes) == kFileBytes, "read to check");
    worker::require(memcmp(seen.data(), content.at(file), kFileBytes) == 0, "wrong content");
    close(fd);
  }
}

}  // namespace

int main(int argc, char** argv) {
  worker::require(argc >= 3, "usage: file_calls DIRECTORY FILES");
  const std::string directory = argv[1];
  const auto files = static_cast<unsigned>(atoi(argv[2]));
  const worker::Content content(1);
  const double create = timed(files, [&](unsigned file) {
    const int fd = open(path_of(directory, file).c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600);
    worker::require(fd >= 0, "create");
    worker::require(write(fd, content.at(file), kFileBytes) == kFileBytes, "write");
    worker::require(close(fd) == 0, "close");
  });
  check(directory, files, content);
  const double status = timed(files, [&](unsigned file) {
    struct stat seen;
    worker::require(stat(path_of(directory, file).c_str(), &seen) == 0, "stat");
    worker::require(seen.st_size == kFileBytes, "size");
  });
  const double open_close = timed(files, [&](unsigned file) {
    const int fd = open(path_of(directory, file).c_str(), O_RDONLY);
    worker::require(fd >= 0, "open");
    worker::require(close(fd) == 0, "close");
  });
  const double remove = timed(files, [&](unsigned file) {
    worker::require(unlink(path_of(directory, file).c_str()) == 0, "unlink");
  });
  printf("{\"create\": %.0f, \"stat\": %.0f, \"open\": %.0f, \"unlink\": %.0f}\n", create, status,
         open_close, remove);
  return 0;
}
