// SPDX-License-Identifier: Apache-2.0
// A user's declaration of the order in which a training loop will read, on one line: which library
// makes it, from which seed, of how many items.
//
//   torch-random       seed=42 items=60000 epochs=10
//   torch-distributed  seed=0 items=60000 epochs=10 replicas=8 rank=3 [drop-last] [shuffle=no]
//   numpy-permutation  seed=7 items=60000 epochs=10
//   numpy-generator    seed=7 items=60000 epochs=10
//   list FILE          [items=60000] [epochs=10] [lines=files]
//
// Each may end with the readers of the items, workers=N [batch=N], and with their places:
// item-bytes=SIZE [header=SIZE], or item-files=FILE. A value with blanks in it stands in double
// quotes; a switch without a value is a yes; `_` is `-`.
//
// Thread safety: pure functions, values. Errors: kInvalid; the message names the field and what to
// write instead.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "policy/orders/item_layout.h"

namespace cairn {

enum class OrderKind : std::uint8_t {
  kTorchRandom = 0,   // torch.utils.data.RandomSampler
  kTorchDistributed,  // torch.utils.data.DistributedSampler
  kNumpyPermutation,  // numpy.random.RandomState(seed).permutation(items)
  kNumpyGenerator,    // numpy.random.default_rng(seed).permutation(items)
  kList               // a file says it
};
inline constexpr unsigned kOrderKinds = 5;
const char* name_of(OrderKind kind);

// The iterator over a RandomSampler. A DataLoader draws a seed for its workers from the same
// generator before the sampler draws its own.
enum class TorchLoader : std::uint8_t {
  kEachEpoch = 0,  // loader=each-epoch: a DataLoader
  kFirstEpoch,     // loader=first-epoch: a DataLoader(persistent_workers=True)
  kNone            // loader=none: the sampler is iterated by itself
};

inline constexpr std::uint64_t kOrderItemsMax = std::uint64_t{1} << 31;
inline constexpr std::uint32_t kOrderEpochsMax = std::uint32_t{1} << 20;
inline constexpr std::uint32_t kOrderWorkersMax = 4096;

struct OrderDeclaration {
  OrderKind kind = OrderKind::kList;
  std::uint64_t seed = 0;   // a negative one of torch is its two's complement, as in torch
  std::uint32_t items = 0;  // of the data set; 0 when only the list says
  std::uint32_t epochs = 1;

  // torch-random. `generator=own`: DataLoader(generator=g) after g.manual_seed(seed), instead of
  // torch.manual_seed(seed). `drawn=N`: so many numbers of 32 bits were drawn before the first
  // epoch, such as for the initial weights of a model.
  TorchLoader loader = TorchLoader::kEachEpoch;
  bool has_own_generator = false;
  std::uint64_t drawn_before = 0;

  // torch-distributed
  std::uint32_t replicas = 1;
  std::uint32_t rank = 0;
  bool drops_last = false;
  bool shuffles = true;

  // numpy-permutation, numpy-generator. `reseed`: each epoch begins with seed + epoch instead of
  // going on with the generator. `in-place`: each epoch shuffles the order of the one before.
  bool reseeds = false;
  bool is_in_place = false;

  // list. A line is the number of an item, or, with lines=files, the name of its file.
  std::string list_path;
  bool is_list_of_files = false;

  // Processes that read the items in batches, taking turns, as those of
  // DataLoader(num_workers=N, batch_size=N).
  std::uint32_t workers = 1;
  std::uint32_t batch = 1;

  ItemLayout layout;
};

Result<OrderDeclaration> parse_order(std::string_view text);

// Whether the last byte of the packed file is below 2^63. `items`: how many there turned out to be.
Status check_layout(const ItemLayout& layout, std::uint64_t items);

}  // namespace cairn
