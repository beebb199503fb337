// SPDX-License-Identifier: Apache-2.0
//
// A stream of page references through experts of replacement, Cairn's and published ones.
//
//   replacement STREAM --capacities 64,640 [--experts ws-plus,lru]
//
// STREAM holds page numbers as 32-bit integers of this machine, from 0 on and without gaps. Prints,
// for each expert and capacity, its misses and the nanoseconds that a reference took it.
#include <memory>

#include "policy/replacement/compared_experts.h"
#include "replacement_peers.h"
#include "worker.h"

namespace {

using cairn::Expert;
using cairn::PageId;

std::vector<uint32_t> read_stream(const std::string& path) {
  FILE* file = fopen(path.c_str(), "rb");
  worker::require(file != nullptr, path);
  std::vector<uint32_t> stream;
  std::vector<uint32_t> part(1 << 16);
  size_t got = 0;
  while ((got = fread(part.data(), sizeof(uint32_t), part.size(), file)) > 0)
    stream.insert(stream.end(), part.begin(), part.begin() + static_cast<ptrdiff_t>(got));
  fclose(file);
  if (stream.empty()) worker::fail(path + ": no references");
  return stream;
}

std::unique_ptr<Expert> make(const std::string& name, uint32_t capacity) {
  if (auto expert = cairn::make_compared_expert(name, capacity)) return expert;
  if (name == "sieve") return std::make_unique<replacement_peers::Sieve>(capacity);
  if (name == "2q") return std::make_unique<replacement_peers::TwoQueues>(capacity);
  if (name == "arc") return std::make_unique<replacement_peers::Arc>(capacity);
  if (name == "lfu-aged") return std::make_unique<replacement_peers::AgedFrequency>(capacity);
  worker::fail("no expert is named " + name);
}

std::vector<std::string> split(std::string rest) {
  std::vector<std::string> words;
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    words.push_back(rest.substr(0, comma));
    rest.erase(0, comma + 1);
  }
  return words;
}

struct Outcome {
  size_t misses = 0;
  double ns = 0;  // a reference
};

Outcome run(const std::vector<uint32_t>& stream, const std::string& name, uint32_t capacity) {
  const auto expert = make(name, capacity);
  if (auto* future = dynamic_cast<cairn::FarthestFuture*>(expert.get())) {
    for (const uint32_t page : stream) future->expect(PageId{page});
  }
  Outcome outcome;
  const int64_t begin = worker::now_ns();
  for (const uint32_t page : stream) outcome.misses += expert->reference(PageId{page}) ? 0 : 1;
  outcome.ns = static_cast<double>(worker::now_ns() - begin) / static_cast<double>(stream.size());
  return outcome;
}

}  // namespace

int main(int count, char** words) {
  const worker::Options options(count, words);
  const std::vector<uint32_t> stream = read_stream(options.positional(0));
  const char* separator = "";
  printf("{\"runs\": [");
  for (const uint64_t capacity : options.numbers("--capacities", "")) {
    if (capacity == 0 || capacity > UINT32_MAX) worker::fail("--capacities: from 1 on");
    for (const std::string& name : split(options.text("--experts", "ws-plus"))) {
      const Outcome outcome = run(stream, name, static_cast<uint32_t>(capacity));
      printf("%s{\"expert\": \"%s\", \"capacity\": %llu, \"misses\": %zu, \"ns\": %.1f}", separator,
             name.c_str(), static_cast<unsigned long long>(capacity), outcome.misses, outcome.ns);
      separator = ", ";
    }
  }
  printf("]}\n");
  return 0;
}
