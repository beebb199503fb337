// SPDX-License-Identifier: Apache-2.0
//
// Records through stdio: fwrite them all to a new file, then fread them all:
//   stdio_records FILE --records 2000000 --record 100
// Prints {"fwrite_ns", "fread_ns"} per record (opening and closing included).
#include "worker.h"

int main(int count, char** words) {
  worker::Options options(count, words);
  std::string path = options.positional(0);
  uint64_t records = options.number("--records", 100'000);
  size_t size = options.number("--record", 100);
  worker::Content content(0);

  int64_t begin = worker::now_ns();
  FILE* file = fopen(path.c_str(), "w");
  worker::require(file != nullptr, "fopen " + path);
  for (uint64_t i = 0; i < records; ++i) {
    worker::require(fwrite(content.at(i * size), size, 1, file) == 1, "fwrite");
  }
  worker::require(fclose(file) == 0, "fclose");
  double fwrite_ns = static_cast<double>(worker::now_ns() - begin) / static_cast<double>(records);

  // The second pass compares; the first one is the timed one, with nothing but fread in its loop.
  worker::Buffer buffer(size);
  double fread_ns = 0;
  for (int pass = 0; pass < 2; ++pass) {
    begin = worker::now_ns();
    file = fopen(path.c_str(), "r");
    worker::require(file != nullptr, "fopen " + path);
    for (uint64_t i = 0; i < records; ++i) {
      worker::require(fread(buffer.data(), size, 1, file) == 1, "fread");
      if (pass == 1 && memcmp(buffer.data(), content.at(i * size), size) != 0) {
        worker::fail("wrong record " + std::to_string(i));
      }
    }
    worker::require(fgetc(file) == EOF, "the file is longer than written");
    fclose(file);
    if (pass == 0) {
      fread_ns = static_cast<double>(worker::now_ns() - begin) / static_cast<double>(records);
    }
  }
  printf("{\"fwrite_ns\": %.3f, \"fread_ns\": %.3f}\n", fwrite_ns, fread_ns);
  return 0;
}
