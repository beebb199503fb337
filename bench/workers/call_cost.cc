// SPDX-License-Identifier: Apache-2.0
//
// What single calls on ordinary descriptors cost, for calls on files that Cairn does not manage:
//   call_cost FILE [--slices 9] [--slice-ms 20]
// Prints {"<call>": ns of the fastest slice, ...}: the floor is what an added instruction moves,
// while the mean moves with whatever else the machine does.
#include "worker.h"

namespace {

template <typename Call>
double fastest_slice(unsigned slices, int64_t slice_ns, Call call) {
  constexpr int kBatch = 500;
  double fastest = 1e18;
  for (unsigned i = 0; i < slices; ++i) {
    int64_t start = worker::now_ns();
    int64_t elapsed = 0;
    uint64_t calls = 0;
    do {
      for (int j = 0; j < kBatch; ++j) call();
      calls += kBatch;
      elapsed = worker::now_ns() - start;
    } while (elapsed < slice_ns);
    fastest = std::min(fastest, static_cast<double>(elapsed) / static_cast<double>(calls));
  }
  return fastest;
}

}  // namespace

int main(int count, char** words) {
  worker::Options options(count, words);
  std::string path = options.positional(0);
  auto slices = static_cast<unsigned>(options.number("--slices", 9));
  auto slice_ns = static_cast<int64_t>(options.number("--slice-ms", 20)) * 1'000'000;
  int file = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0644);
  int sink = open("/dev/null", O_WRONLY);
  int source = open("/dev/zero", O_RDONLY);
  worker::require(file >= 0 && sink >= 0 && source >= 0, "open");
  char buffer[64] = "sixty-four bytes of content that must come back as written, ok.";
  char back[64] = {};
  worker::write_fully(file, buffer, sizeof buffer, 0);
  double pread_ns = fastest_slice(slices, slice_ns, [&] {
    worker::require(pread(file, back, sizeof back, 0) == sizeof back, "pread");
  });
  if (memcmp(buffer, back, sizeof back) != 0) worker::fail("wrong content");
  double pwrite_ns = fastest_slice(slices, slice_ns, [&] {
    worker::require(pwrite(file, buffer, sizeof buffer, 0) == sizeof buffer, "pwrite");
  });
  double read_ns =
      fastest_slice(slices, slice_ns, [&] { worker::require(read(source, back, 1) == 1, "read"); });
  double write_ns = fastest_slice(slices, slice_ns,
                                  [&] { worker::require(write(sink, buffer, 1) == 1, "write"); });
  double lseek_ns = fastest_slice(slices, slice_ns,
                                  [&] { worker::require(lseek(file, 0, SEEK_SET) == 0, "lseek"); });
  struct stat status;
  double fstat_ns =
      fastest_slice(slices, slice_ns, [&] { worker::require(fstat(file, &status) == 0, "fstat"); });
  printf(
      "{\"pread\": %.3f, \"pwrite\": %.3f, \"read\": %.3f, \"write\": %.3f, \"lseek\": %.3f, "
      "\"fstat\": %.3f}\n",
      pread_ns, pwrite_ns, read_ns, write_ns, lseek_ns, fstat_ns);
  return 0;
}
