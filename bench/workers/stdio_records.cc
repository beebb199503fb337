// SPDX-License-Identifier: Apache-2.0
//
// Records through stdio:
//   stdio_records FILE --mode write --records 2000000 --record 100
//       fwrites them all to a new file, then freads them all
//   stdio_records FILE --mode read ...
//       freads a file that is there: once to compare, once for the time
// Prints {"fwrite_ns", "fread_ns"} per record (opening and closing included).
#include "worker.h"

namespace {

struct Job {
  std::string path;
  uint64_t records = 0;
  size_t size = 0;
};

double ns_per_record(const Job& job, int64_t begin) {
  return static_cast<double>(worker::now_ns() - begin) / static_cast<double>(job.records);
}

double write_all(const Job& job, worker::Content& content) {
  const int64_t begin = worker::now_ns();
  FILE* file = fopen(job.path.c_str(), "w");
  worker::require(file != nullptr, "fopen " + job.path);
  for (uint64_t i = 0; i < job.records; ++i) {
    worker::require(fwrite(content.at(i * job.size), job.size, 1, file) == 1, "fwrite");
  }
  worker::require(fclose(file) == 0, "fclose");
  return ns_per_record(job, begin);
}

// With nothing but fread in the loop, unless there is a content to compare with.
double read_all(const Job& job, worker::Content* content) {
  worker::Buffer buffer(job.size);
  const int64_t begin = worker::now_ns();
  FILE* file = fopen(job.path.c_str(), "r");
  worker::require(file != nullptr, "fopen " + job.path);
  for (uint64_t i = 0; i < job.records; ++i) {
    worker::require(fread(buffer.data(), job.size, 1, file) == 1, "fread");
    if (content != nullptr && memcmp(buffer.data(), content->at(i * job.size), job.size) != 0) {
      worker::fail("wrong record " + std::to_string(i));
    }
  }
  worker::require(fgetc(file) == EOF, "the file is longer than written");
  fclose(file);
  return ns_per_record(job, begin);
}

}  // namespace

int main(int count, char** words) {
  worker::Options options(count, words);
  const Job job{options.positional(0), options.number("--records", 100'000),
                options.number("--record", 100)};
  worker::Content content(0);
  if (options.text("--mode", "write") == "write") {
    const double fwrite_ns = write_all(job, content);
    const double fread_ns = read_all(job, nullptr);
    read_all(job, &content);
    printf("{\"fwrite_ns\": %.3f, \"fread_ns\": %.3f}\n", fwrite_ns, fread_ns);
  } else {
    read_all(job, &content);
    printf("{\"fread_ns\": %.3f}\n", read_all(job, nullptr));
  }
  return 0;
}
