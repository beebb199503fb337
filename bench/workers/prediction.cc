// SPDX-License-Identifier: Apache-2.0
//
// What the predictors foresee of reads in a given order, without a device: the real chooser in
// front of a simulated one (policy/prefetch/testing/device_model.h).
//   prediction LIST --blocks 2048 [--ram-blocks 512] [--compute-us 6000] [--batch 1] [--skip 0]
// LIST is as read_list takes it. The first `--skip` epochs are read before anything is counted.
// Prints {"fetched", "used", "late", "missed", "read", "requests"} in blocks, and {"ns_per_access"}
// of real time, "wall_ns" of simulated time.
#include <fstream>

#include "policy/prefetch/testing/device_model.h"
#include "worker.h"

namespace {

using cairn::BlockRun;
using cairn::testing::DeviceModel;
using cairn::testing::DeviceModelOptions;
using cairn::testing::DeviceModelResult;

constexpr uint64_t kBlockBytes = 65536;

// No blocks: the file is opened anew.
std::vector<BlockRun> blocks_of_list(const std::string& path) {
  std::ifstream file(path);
  std::vector<BlockRun> runs;
  for (std::string word; file >> word;) {
    if (word == "=") {
      runs.push_back(BlockRun{0, 0});
      continue;
    }
    const uint64_t offset = std::stoull(word);
    uint64_t length = 0;
    worker::require(static_cast<bool>(file >> length) && length != 0, "the list is cut off");
    const uint64_t first = offset / kBlockBytes;
    const uint64_t end = (offset + length - 1) / kBlockBytes + 1;
    runs.push_back(BlockRun{static_cast<int64_t>(first), static_cast<uint32_t>(end - first)});
  }
  worker::require(!runs.empty(), "cannot read " + path);
  return runs;
}

DeviceModelResult minus(DeviceModelResult result, const DeviceModelResult& before) {
  result.fetched -= before.fetched;
  result.used -= before.used;
  result.late -= before.late;
  result.missed -= before.missed;
  result.read -= before.read;
  result.requests -= before.requests;
  return result;
}

void print(const DeviceModelResult& result) {
  const auto whole = [](uint64_t count) { return static_cast<unsigned long long>(count); };
  printf(
      "{\"fetched\": %llu, \"used\": %llu, \"late\": %llu, \"missed\": %llu, \"read\": %llu, "
      "\"requests\": %llu, \"ns_per_access\": %.1f, \"wall_ns\": %lld}\n",
      whole(result.fetched), whole(result.used), whole(result.late), whole(result.missed),
      whole(result.read), whole(result.requests),
      static_cast<double>(result.predict_ns) / static_cast<double>(result.accesses),
      static_cast<long long>(result.end_ns));
}

}  // namespace

int main(int count, char** words) {
  const worker::Options options(count, words);
  const std::vector<BlockRun> runs = blocks_of_list(options.positional(0));
  DeviceModelOptions model_options;
  model_options.file_blocks = static_cast<int64_t>(options.number("--blocks", 2048));
  model_options.ram_blocks = options.number("--ram-blocks", 512);
  model_options.unread_blocks_max = model_options.ram_blocks / 4;
  model_options.compute_ns = static_cast<int64_t>(options.number("--compute-us", 6000) * 1000);
  model_options.batch = static_cast<unsigned>(options.number("--batch", 1));
  uint64_t skipped = options.number("--skip", 0);
  DeviceModel model(model_options);
  DeviceModelResult before;
  for (const BlockRun& run : runs) {
    if (run.count != 0) {
      model.read(run);
      continue;
    }
    model.open();
    if (skipped != 0 && --skipped == 0) before = model.result();
  }
  print(minus(model.result(), before));
  return 0;
}
