// SPDX-License-Identifier: Apache-2.0
// The order of the items in each epoch of a declared training loop.
//
// The libraries' own algorithms make it (policy/orders/permutations.h), so it is the loop's order
// and not a guess, as long as every epoch is read to its end and nothing else draws from the same
// generator meanwhile. Sources, besides those named there: torch/utils/data/sampler.py,
// distributed.py and dataloader.py of PyTorch 2.15; numpy/random/mtrand.pyx and _generator.pyx.
//
// Thread safety: none. Ownership: a value. Memory: four bytes for an item of the current order;
// four more while one of several replicas is made, or always when each epoch shuffles the one
// before; for a list, its own length.
// Time: an epoch costs one permutation. Where the generator goes on from epoch to epoch, those in
// between cost one each too, and an epoch before the last one asked for all of them again.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/status.h"
#include "policy/orders/order_declaration.h"
#include "policy/orders/pcg64.h"

namespace cairn {

class EpochOrder {
 public:
  // Reads the lists that the declaration names. Errors: those of the lists, with file and line; a
  // layout that the number of items makes too large.
  static Result<EpochOrder> make(const OrderDeclaration& declaration);

  // The numbers of the items in the order of this epoch, counted from 0. Errors: kInvalid for an
  // epoch that was not declared.
  Result<std::vector<std::uint32_t>> order(std::uint32_t epoch);

  // Where in the order of an epoch the worker's item number `at` stands, counted from 0: workers
  // take whole batches in turn (torch/utils/data/dataloader.py, _try_put_index()).
  std::uint64_t place_of(std::uint32_t worker, std::uint64_t at) const {
    const std::uint64_t batch = declaration_.batch;
    CAIRN_DCHECK(batch > 0 && worker < declaration_.workers);
    return (at / batch * declaration_.workers + worker) * batch + at % batch;
  }
  std::uint32_t workers() const { return declaration_.workers; }

  const OrderDeclaration& declaration() const { return declaration_; }
  // Items of the data set: numbers are less than this.
  std::uint32_t items() const { return declaration_.items; }
  std::uint32_t epochs() const { return declaration_.epochs; }
  // How many numbers an epoch has.
  std::uint64_t items_per_epoch() const;
  // The numbers that a list gives; empty for an order that is drawn.
  const std::vector<std::uint32_t>& listed() const { return listed_; }
  // Whether the lists that two equal declarations name hold the same.
  bool has_same_lists(const EpochOrder& other) const {
    return listed_ == other.listed_ && item_files_ == other.item_files_;
  }
  // Gives the memory of its lists back; nothing else may be asked of it afterwards.
  void forget_lists() {
    listed_ = {};
    item_files_ = {};
    previous_ = {};
  }

  // The file of each item, when the declaration names a list of them; else empty.
  const std::vector<std::string>& item_files() const { return item_files_; }

 private:
  explicit EpochOrder(const OrderDeclaration& declaration);
  Status read_lists();
  Status read_file_order();

  std::vector<std::uint32_t> sampler_order(std::uint32_t epoch) const;
  std::vector<std::uint32_t> replica_order(std::uint32_t epoch) const;
  std::vector<std::uint32_t> sequence_order(std::uint32_t epoch);
  void begin_sequence();
  void make_next_of_sequence(std::vector<std::uint32_t>* items);
  void seed(std::uint64_t seed);

  OrderDeclaration declaration_;
  std::vector<std::string> item_files_;
  std::vector<std::uint32_t> listed_;

  // The state before next_epoch_ of a generator that goes on from epoch to epoch.
  std::mt19937 twister_;
  Pcg64 pcg_{0};
  std::uint32_t next_epoch_ = 0;
  std::vector<std::uint32_t> previous_;  // the order of the epoch before, when it is shuffled again
};

}  // namespace cairn
