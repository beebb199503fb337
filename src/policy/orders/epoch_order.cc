// SPDX-License-Identifier: Apache-2.0
#include "policy/orders/epoch_order.h"

#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "policy/orders/item_list.h"
#include "policy/orders/permutations.h"

namespace cairn {

EpochOrder::EpochOrder(const OrderDeclaration& declaration) : declaration_(declaration) {
  begin_sequence();
}

Result<EpochOrder> EpochOrder::make(const OrderDeclaration& declaration) {
  EpochOrder order(declaration);
  CAIRN_RETURN_IF_ERROR(order.read_lists());
  CAIRN_RETURN_IF_ERROR(check_layout(declaration.layout, order.items()));
  return order;
}

Status EpochOrder::read_lists() {
  if (declaration_.is_list_of_files) return read_file_order();
  if (declaration_.kind == OrderKind::kList) {
    const std::uint64_t bound = declaration_.items != 0 ? declaration_.items : kOrderItemsMax;
    auto numbers = read_item_numbers(declaration_.list_path, bound);
    if (!numbers) return numbers.status();
    listed_ = std::move(*numbers);
  }
  if (declaration_.layout.is_files()) {
    auto names = read_item_files(declaration_.layout.files_path);
    if (!names) return names.status();
    item_files_ = std::move(*names);
    if (declaration_.items == 0)
      declaration_.items = static_cast<std::uint32_t>(item_files_.size());
    if (item_files_.size() != declaration_.items) {
      return Status(StatusCode::kInvalid,
                    "order: " + declaration_.layout.files_path + " names " +
                        std::to_string(item_files_.size()) + " files for items=" +
                        std::to_string(declaration_.items) + "; name one file for each item");
    }
  }
  std::uint32_t highest = 0;
  for (const std::uint32_t item : listed_) highest = item > highest ? item : highest;
  if (declaration_.items == 0) declaration_.items = highest + 1;
  if (highest < declaration_.items) return Status::ok();
  return Status(StatusCode::kInvalid, "order: " + declaration_.list_path + " has item " +
                                          std::to_string(highest) + ", but " +
                                          declaration_.layout.files_path + " names only " +
                                          std::to_string(declaration_.items) + " files");
}

// Items are numbered as their files appear for the first time.
Status EpochOrder::read_file_order() {
  auto names = read_item_files(declaration_.list_path);
  if (!names) return names.status();
  std::unordered_map<std::string, std::uint32_t> numbers;
  for (std::string& name : *names) {
    const auto [found, is_new] =
        numbers.try_emplace(name, static_cast<std::uint32_t>(item_files_.size()));
    if (is_new) item_files_.push_back(std::move(name));
    listed_.push_back(found->second);
  }
  if (declaration_.items == 0) declaration_.items = static_cast<std::uint32_t>(item_files_.size());
  if (declaration_.items == item_files_.size()) return Status::ok();
  return Status(StatusCode::kInvalid,
                "order: " + declaration_.list_path + " names " +
                    std::to_string(item_files_.size()) + " different files, not the " +
                    std::to_string(declaration_.items) + " of items=; correct it or leave it out");
}

std::uint64_t EpochOrder::items_per_epoch() const {
  const std::uint64_t items = declaration_.items;
  if (declaration_.kind == OrderKind::kList) return listed_.size();
  if (declaration_.kind != OrderKind::kTorchDistributed) return items;
  const std::uint64_t replicas = declaration_.replicas;
  return declaration_.drops_last ? items / replicas : (items + replicas - 1) / replicas;
}

Result<std::vector<std::uint32_t>> EpochOrder::order(std::uint32_t epoch) {
  if (epoch >= declaration_.epochs) {
    return Status(StatusCode::kInvalid, "order: there is no epoch " + std::to_string(epoch) +
                                            ": epochs=" + std::to_string(declaration_.epochs) +
                                            " were declared, counted from 0");
  }
  switch (declaration_.kind) {
    case OrderKind::kTorchRandom:
      return declaration_.has_own_generator ? sequence_order(epoch) : sampler_order(epoch);
    case OrderKind::kTorchDistributed:
      return replica_order(epoch);
    case OrderKind::kNumpyPermutation:
    case OrderKind::kNumpyGenerator:
      return sequence_order(epoch);
    case OrderKind::kList:
      break;
  }
  return listed_;
}

// RandomSampler.__iter__ without a generator of its own: it seeds a new one with a number from the
// default generator, which nobody else is taken to use but the DataLoader.
std::vector<std::uint32_t> EpochOrder::sampler_order(std::uint32_t epoch) const {
  std::uint64_t numbers_before = epoch;
  if (declaration_.loader == TorchLoader::kEachEpoch) numbers_before = 2 * std::uint64_t{epoch} + 1;
  if (declaration_.loader == TorchLoader::kFirstEpoch) numbers_before = std::uint64_t{epoch} + 1;
  std::mt19937 defaults = mersenne_twister(declaration_.seed);
  defaults.discard(declaration_.drawn_before + 2 * numbers_before);
  // random_() of an int64 tensor leaves the sign out, which manual_seed() would not look at either.
  std::mt19937 generator = mersenne_twister(torch_random_64(defaults));
  std::vector<std::uint32_t> items(declaration_.items);
  permute_as_torch(generator, items);
  return items;
}

// DistributedSampler.__iter__ after set_epoch(epoch): the items are repeated or cut until they can
// be dealt out evenly, and each replica takes every replicas-th.
std::vector<std::uint32_t> EpochOrder::replica_order(std::uint32_t epoch) const {
  std::vector<std::uint32_t> items(declaration_.items);
  if (declaration_.shuffles) {
    std::mt19937 generator = mersenne_twister(declaration_.seed + epoch);
    permute_as_torch(generator, items);
  } else {
    number_items(items);
  }
  CAIRN_CHECK(!items.empty() && declaration_.rank < declaration_.replicas);
  std::vector<std::uint32_t> own(items_per_epoch());
  std::uint64_t position = declaration_.rank;
  for (std::uint32_t& item : own) {
    item = items[position % items.size()];
    position += declaration_.replicas;
  }
  return own;
}

std::vector<std::uint32_t> EpochOrder::sequence_order(std::uint32_t epoch) {
  if (declaration_.reseeds && !declaration_.is_in_place) next_epoch_ = epoch;
  if (epoch < next_epoch_) begin_sequence();
  std::vector<std::uint32_t> items(declaration_.items);
  do {
    make_next_of_sequence(&items);
  } while (next_epoch_ <= epoch);
  CAIRN_CHECK(next_epoch_ == epoch + 1);
  return items;
}

void EpochOrder::begin_sequence() {
  next_epoch_ = 0;
  previous_.clear();
  seed(declaration_.seed);
  if (declaration_.kind == OrderKind::kTorchRandom) twister_.discard(declaration_.drawn_before);
}

void EpochOrder::seed(std::uint64_t seed) {
  if (declaration_.kind == OrderKind::kNumpyGenerator) {
    pcg_ = Pcg64(seed);
  } else {
    twister_ = mersenne_twister(seed);
  }
}

void EpochOrder::make_next_of_sequence(std::vector<std::uint32_t>* items) {
  if (declaration_.kind == OrderKind::kTorchRandom) {
    const bool draws_for_workers =
        declaration_.loader == TorchLoader::kEachEpoch ||
        (declaration_.loader == TorchLoader::kFirstEpoch && next_epoch_ == 0);
    if (draws_for_workers) twister_.discard(2);
    permute_as_torch(twister_, *items);
    // A sampler that is read to its end makes one more permutation, of which it takes none.
    twister_.discard(torch_permutation_draws(items->size()));
    ++next_epoch_;
    return;
  }
  if (declaration_.reseeds) seed(declaration_.seed + next_epoch_);
  if (declaration_.is_in_place && !previous_.empty()) {
    CAIRN_CHECK(previous_.size() == items->size());
    *items = previous_;
  } else {
    number_items(*items);
  }
  if (declaration_.kind == OrderKind::kNumpyGenerator) {
    shuffle_as_numpy(pcg_, *items);
  } else {
    shuffle_as_numpy(twister_, *items);
  }
  if (declaration_.is_in_place) previous_ = *items;
  ++next_epoch_;
}

}  // namespace cairn
