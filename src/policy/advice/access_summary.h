// SPDX-License-Identifier: Apache-2.0
// What a program's accesses come to: how many requests of which size, in which order, how much of
// it over time. Prediction needs no more than this and the miss-ratio curves.
//
// Accesses are counted by their uses of blocks of 64 KiB, which is what Cairn moves. Accesses of
// one stream to one block in a row are one use. A use is sequential if the stream's last one was of
// the block before it; such a use is of the whole block, because the record of an access may lack
// hits within a block. Any other use is random and counts the bytes that the record has.
//
// A device reads all sequential uses in order. A prefetcher foresees only those of requests that go
// on where the stream's last request ended: a shuffle of large requests has the others alone.
//
// Thread safety: none for the builder; summaries are values. Units: bytes, seconds.
// Ownership: 56 bytes for each pair of stream and file, 24 for each file, and 64 KiB.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace cairn::advice {

inline constexpr std::uint64_t kBlockBytes = 64 * 1024;
// The kernel's read-ahead and Cairn's flusher make requests of about this size of what adjoins.
inline constexpr std::uint64_t kJoinedBytes = 1 << 20;
// A limited device makes good in a pause for what it was behind, and for so much of what comes
// next: limits are kept on the average over about that time.
inline constexpr double kPauseSeconds = 0.1;

struct Access {
  std::uint64_t time_ns = 0;
  std::uint64_t offset = 0;
  std::uint32_t length = 0;
  std::uint32_t file = 0;
  std::uint64_t stream = 0;   // what reads or writes in one order
  std::uint32_t process = 0;  // what waits for it
  bool is_write = false;
  bool was_hit = false;  // by a tier, when it was recorded
};

// Reads, or writes.
struct UseCounts {
  double requests = 0;  // as recorded
  double request_bytes = 0;
  double sequential_uses = 0;
  double sequential_bytes = 0;
  // The sequential ones that are foreseen.
  double foreseen_uses = 0;
  double foreseen_bytes = 0;
  double random_uses = 0;
  double random_bytes = 0;
  // Requests that nobody foresees and that have more than one block; and how often such a one comes
  // to another mebibyte, which is a request of its own to the device.
  double split_requests = 0;
  double further_requests = 0;
  double repeats = 0;  // of requests, within a use
  // Random ones of blocks behind such as another stream has just used: the kernel reads ahead for
  // these as well (try_context_readahead()).
  double adjoining_uses = 0;
  // What the blocks of the random uses have, as far as their files go.
  double random_block_bytes = 0;

  double uses() const { return sequential_uses + random_uses; }
  double bytes() const { return sequential_bytes + random_bytes; }
  double sequential_share() const { return uses() > 0 ? sequential_uses / uses() : 0; }
  double foreseen_share() const { return uses() > 0 ? foreseen_uses / uses() : 0; }
};

// How many bytes were written in each part of the time.
struct WriteTimes {
  static constexpr std::size_t kParts = 512;
  double part_seconds = 0.001;
  std::vector<double> bytes;
};

struct AccessSummary {
  // Requests below 4 KiB, below 64 KiB, below 1 MiB, and larger.
  static constexpr std::array<std::uint64_t, 3> kSizeLimits = {4096, 65536, 1U << 20};

  UseCounts reads;
  UseCounts writes;
  double recorded_hits = 0;  // uses by reads that were no miss when they were recorded
  double seconds = 0;        // from the first access to the last
  double concurrency = 1;    // mean number of processes among 64 accesses in a row
  // Of the time between two accesses, what is longer than kPauseSeconds.
  double long_pause_seconds = 0;
  double opens = 0;
  double new_files = 0;   // that a write at their beginning makes
  double read_share = 0;  // the time from the first read to the last, of `seconds`
  std::array<double, 4> requests_by_size{};
  std::uint64_t files = 0;
  std::optional<double> fsyncs;   // none: the record does not say
  double fsync_wait_seconds = 0;  // that one of them took on average, as recorded; 0: not known
  // As measured with the recording: none for a trace alone.
  std::optional<double> run_seconds;
  std::optional<double> run_io_seconds;  // of all processes together
  WriteTimes written;

  bool is_empty() const { return reads.requests + writes.requests == 0; }
};

class SummaryBuilder {
 public:
  SummaryBuilder();

  // use(block) is called for each use of a block, in order. Requires: times that do not descend
  // much; an earlier one counts as the beginning.
  template <typename Use>
  void add(const Access& access, Use&& use) {
    Stream& stream = note(access);
    const std::uint64_t length = access.length > 0 ? access.length : 1;
    const std::uint64_t end = access.offset + length;
    for (std::uint64_t block = access.offset / kBlockBytes; block <= (end - 1) / kBlockBytes;
         ++block) {
      if (add_part(stream, access, block)) use(block);
    }
  }

  // What takes no bytes.
  void add_open() { counts_.opens += 1; }

  AccessSummary summary() const;

 private:
  static constexpr std::uint64_t kNoBlock = UINT64_MAX;
  static constexpr unsigned kWindow = 64;

  struct Stream {
    std::uint64_t block = kNoBlock;
    std::uint64_t counted = 0;  // bytes of the block that are in the counts
    std::uint32_t end = 0;      // of the last access, within the block
    std::uint16_t pages = 0;    // that the use has had
    bool is_sequential = false;
    bool goes_on = false;  // the request that is being counted, where the last one ended
    bool is_foreseen = false;
  };
  static_assert(sizeof(Stream) == 32);
  static_assert(kBlockBytes / 16 == 4096, "a bit for each page");
  struct File {
    std::uint64_t end = 0;
    std::uint64_t random_reads = 0;
    std::uint64_t random_writes = 0;
  };

  Stream& note(const Access& access);
  void note_time(const Access& access);
  // Whether it is of pages that the use has had, and does not go on where the last access ended.
  static bool note_part(Stream& stream, const Access& access, std::uint64_t block);
  // Returns: whether it is a use of its own.
  bool add_part(Stream& stream, const Access& access, std::uint64_t block);
  static void add_bytes(const Stream& stream, std::uint64_t bytes, UseCounts* counts);
  static void note_following(const Access& access, std::uint64_t block, UseCounts* counts);
  void merge_parts();
  bool was_just_used(std::uint32_t file, std::uint64_t block) const;
  void note_used(std::uint32_t file, std::uint64_t block);

  AccessSummary counts_;
  struct Used {
    std::uint64_t key = kNoBlock;
    std::uint64_t access = 0;
  };

  // Blocks that were used, each in the place of its hash: a later one takes it.
  static constexpr std::size_t kUsedMax = std::size_t{1} << 12;
  std::vector<Used> used_ = std::vector<Used>(kUsedMax);
  std::unordered_map<std::uint64_t, Stream> streams_;
  std::unordered_map<std::uint32_t, std::uint64_t> last_windows_;  // by process
  std::vector<File> known_files_;
  std::uint64_t first_ns_ = 0;
  std::uint64_t last_ns_ = 0;
  std::optional<std::uint64_t> first_read_ns_;
  std::uint64_t last_read_ns_ = 0;
  std::uint64_t accesses_ = 0;
  std::uint64_t processes_in_windows_ = 0;
};

}  // namespace cairn::advice
