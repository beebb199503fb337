// SPDX-License-Identifier: Apache-2.0
//
// A fresh process writes one new file from front to back:
//   sequential_write FILE --size 1G --request 1M [--verify 1]
// Prints {"open_ns", "write_ns", "close_ns", "total_ns"}; the file is read back and compared
// afterwards.
#include "worker.h"

int main(int count, char** words) {
  worker::Options options(count, words);
  std::string path = options.positional(0);
  uint64_t size = options.number("--size", 64 << 20);
  uint64_t request = options.number("--request", 1 << 20);
  worker::Content content(0);
  int64_t begin = worker::now_ns();
  int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0644);
  worker::require(descriptor >= 0, "open " + path);
  int64_t opened = worker::now_ns();
  for (uint64_t offset = 0; offset < size; offset += request) {
    size_t length = std::min(request, size - offset);
    ssize_t done = write(descriptor, content.at(offset), length);
    worker::require(done == static_cast<ssize_t>(length), "short write");
  }
  int64_t written = worker::now_ns();
  worker::require(close(descriptor) == 0, "close");
  int64_t closed = worker::now_ns();

  if (options.number("--verify", 1) != 0) {
    descriptor = open(path.c_str(), O_RDONLY);
    worker::require(descriptor >= 0, "open " + path);
    worker::Buffer buffer(request);
    for (uint64_t offset = 0; offset < size; offset += request) {
      size_t length = std::min(request, size - offset);
      ssize_t done = read(descriptor, buffer.data(), length);
      worker::require(done == static_cast<ssize_t>(length), "verification: short read");
      if (memcmp(buffer.data(), content.at(offset), length) != 0) {
        worker::fail("wrong content at offset " + std::to_string(offset));
      }
    }
    worker::require(read(descriptor, buffer.data(), 1) == 0, "the file is longer than written");
  }
  printf("{\"open_ns\": %ld, \"write_ns\": %ld, \"close_ns\": %ld, \"total_ns\": %ld}\n",
         opened - begin, written - opened, closed - written, closed - begin);
  return 0;
}
