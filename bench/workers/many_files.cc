// SPDX-License-Identifier: Apache-2.0
//
// Many small files, a thousand to a directory:
//   many_files DIRECTORY --count 1000000 --size 4096 --mode write|check
// Prints {"ns": time per file}.
#include "worker.h"

namespace {

using worker::require;

constexpr uint64_t kFilesPerDirectory = 1000;

std::string directory_name(const std::string& root, uint64_t index) {
  return root + "/" + std::to_string(index / kFilesPerDirectory);
}

void handle_file(const std::string& path, const char* expected, size_t size, bool write_it) {
  int descriptor = open(path.c_str(), write_it ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY, 0644);
  require(descriptor >= 0, "open " + path);
  if (write_it) {
    require(write(descriptor, expected, size) == static_cast<ssize_t>(size), "write " + path);
  } else {
    worker::Buffer buffer(size + 1);
    ssize_t done = read(descriptor, buffer.data(), size + 1);
    require(done >= 0, "read " + path);
    if (done != static_cast<ssize_t>(size) || memcmp(buffer.data(), expected, size) != 0) {
      worker::fail("wrong content: " + path);
    }
  }
  require(close(descriptor) == 0, "close " + path);
}

}  // namespace

int main(int count, char** words) {
  worker::Options options(count, words);
  std::string root = options.positional(0);
  uint64_t files = options.number("--count", 1000);
  size_t size = options.number("--size", 4096);
  bool write_it = options.text("--mode", "write") == "write";
  worker::Content content(0);
  int64_t begin = worker::now_ns();
  for (uint64_t i = 0; i < files; ++i) {
    std::string directory = directory_name(root, i);
    if (write_it && i % kFilesPerDirectory == 0) {
      require(mkdir(directory.c_str(), 0755) == 0 || errno == EEXIST, "mkdir " + directory);
    }
    handle_file(directory + "/" + std::to_string(i), content.at(i * 4096), size, write_it);
  }
  printf("{\"ns\": %.0f}\n",
         static_cast<double>(worker::now_ns() - begin) / static_cast<double>(files));
  return 0;
}
