// SPDX-License-Identifier: Apache-2.0
//
// Queries for chunks of arrays that are kept in the tiers (ARCHIE, section III-C): what it takes to
// find a chunk among many, by the calls that a connector makes (include/cairn/region_calls.h): for
// a part it asks for the array's grid, and whether the chunks are there, before it copies.
//   region_queries FILE --regions 100000 --bytes 4096 --queries 20000
// Prints {"kept", "exact_ns", "partial_ns", "four_ns"}: the median times of a whole chunk, of a
// part of one, and of parts of four. Every byte is compared.
#include <dlfcn.h>

#include "../../include/cairn/region_calls.h"
#include "worker.h"

namespace {

struct Calls {
  decltype(&cairn_region_version) version;
  decltype(&cairn_region_read) read;
  decltype(&cairn_region_keep) keep;
  decltype(&cairn_array_grid) grid;
};

template <typename Function>
void find(const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
  worker::require(function != nullptr, std::string("nothing is called ") + name);
}

class Regions {
 public:
  Regions(int fd, uint64_t bytes) : fd_(fd), bytes_(bytes), buffer_(bytes) {
    find("cairn_region_version", calls_.version);
    find("cairn_region_read", calls_.read);
    find("cairn_region_keep", calls_.keep);
    find("cairn_array_grid", calls_.grid);
    worker::require(calls_.version(fd, &version_) == 0, "the file has no version");
  }
  int keep(uint64_t number) {
    fill(number);
    const CairnRegion region = region_of(number);
    return calls_.keep(&region, buffer_.data());
  }
  // Nanoseconds of `parts` reads of the same size, from chunks that follow each other.
  double read(uint64_t first, uint64_t parts, uint64_t offset, uint64_t length) {
    std::vector<unsigned char> found(parts * length);
    const int64_t began = worker::now_ns();
    if (length < bytes_) look(first, parts);
    for (uint64_t at = 0; at < parts; ++at) {
      const CairnRegion region = region_of(first + at);
      const CairnRegionPart part = {offset, length, found.data() + at * length};
      if (calls_.read(&region, &part, 1) != 0) worker::fail("a chunk is not there");
    }
    const auto took = static_cast<double>(worker::now_ns() - began);
    for (uint64_t at = 0; at < parts; ++at) {
      fill(first + at);
      if (memcmp(found.data() + at * length, buffer_.data() + offset, length) != 0)
        worker::fail("a chunk has other bytes");
    }
    return took;
  }

 private:
  void look(uint64_t first, uint64_t parts) {
    const uint64_t name[2] = {1, 2};
    uint64_t numbers[4] = {};
    (void)calls_.grid(fd_, name, 1, numbers);
    for (uint64_t at = 0; at < parts; ++at) {
      const CairnRegion region = region_of(first + at);
      if (calls_.read(&region, nullptr, 0) != 0) worker::fail("a chunk is not there");
    }
  }
  CairnRegion region_of(uint64_t number) const {
    return {fd_, 0, {number, ~number}, bytes_, version_};
  }
  void fill(uint64_t number) {
    for (uint64_t at = 0; at < bytes_; ++at)
      buffer_[at] = static_cast<unsigned char>((number + at) * 31 >> 3);
  }

  int fd_;
  uint64_t bytes_;
  std::vector<unsigned char> buffer_;
  Calls calls_{};
  CairnFileVersion version_{};
};

}  // namespace

int main(int argc, char** argv) {
  const worker::Options options(argc, argv);
  const uint64_t count = options.number("--regions", 100'000);
  const uint64_t bytes = options.number("--bytes", 4096);
  const uint64_t queries = options.number("--queries", 20'000);
  const int fd = open(options.positional(0).c_str(), O_RDONLY);
  worker::require(fd >= 0, options.positional(0));
  Regions regions(fd, bytes);
  uint64_t kept = 0;
  while (kept < count && regions.keep(kept) == 0) ++kept;
  worker::require(kept > 4, "no chunk can be kept");
  worker::Random random(7);
  std::vector<double> exact, partial, four;
  for (uint64_t query = 0; query < queries; ++query) {
    const uint64_t first = random.below(kept - 4);
    exact.push_back(regions.read(first, 1, 0, bytes));
    partial.push_back(regions.read(random.below(kept - 4), 1, bytes / 4, bytes / 2));
    four.push_back(regions.read(random.below(kept - 4), 4, bytes / 4, bytes / 2));
  }
  printf("{\"kept\": %llu, \"exact_ns\": %.0f, \"partial_ns\": %.0f, \"four_ns\": %.0f}\n",
         static_cast<unsigned long long>(kept), worker::median(exact), worker::median(partial),
         worker::median(four));
}
