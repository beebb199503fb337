// SPDX-License-Identifier: Apache-2.0
// What the worker `metadata` asks of a store of metadata, whoever it is: records of objects and the
// places of blocks, each created, looked up and updated by number.
//
// A record has a key of 24 bytes (device, inode, birth time) and 128 bytes of content; a place has
// a key of 8 bytes (object, block number) and 8 bytes of content (tier and bucket), as in the
// catalog. Content depends on the number and on the version, so an answer tells whether it is
// right.
//
// Thread safety: none; every process has its own.
#pragma once

#include <cstdint>
#include <span>

#include "worker.h"

namespace metadata {

inline constexpr uint32_t kBlocksPerObject = 64;

enum class Kind { kObject, kBlock };
enum class Operation { kCreate, kLookUp, kUpdate };

// What version `version` of record `number` says.
struct Content {
  uint64_t size;
  int64_t mtime_ns;
};
inline Content content_of(uint32_t number, uint32_t version) {
  const uint64_t mixed = (uint64_t{number} + 1) * 0x9E3779B97F4A7C15ull;
  // An update never makes a file smaller: the catalog's sizes only grow under a write.
  return Content{uint64_t{version} << 40 | mixed >> 24, static_cast<int64_t>(mixed >> 2) + version};
}

struct Key {
  uint64_t device;
  uint64_t inode;
  int64_t birth_ns;
};
inline Key key_of(uint32_t number) {
  return Key{0xfd01, 131072 + uint64_t{number}, 1'700'000'000'000'000'000 + int64_t{number} * 977};
}

class Store {
 public:
  virtual ~Store() = default;
  // Carries the operation out for every number, in this order, and ends the worker when an answer
  // is not what it must be. A created record has version 0, an updated one version 1; `version` is
  // what a look-up must find.
  virtual void run(Kind kind, Operation operation, std::span<const uint32_t> numbers,
                   uint32_t version) = 0;
  // Looks every number up, as fast as it goes, outside of what is measured.
  virtual void check(Kind kind, std::span<const uint32_t> numbers, uint32_t version) = 0;
};

}  // namespace metadata
