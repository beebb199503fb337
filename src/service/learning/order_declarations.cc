// SPDX-License-Identifier: Apache-2.0
#include "service/learning/order_declarations.h"

#include <utility>

#include "service/process/log.h"
#include "service/process/log_file.h"

namespace cairn::node {

Status OrderDeclarations::load(const std::string& path) {
  auto orders = DeclaredOrders::load(path, log_warning);
  if (!orders) return orders.status();
  orders_ = std::move(orders.value());
  return Status::ok();
}

Result<std::size_t> OrderDeclarations::declare(const std::string& path,
                                               const std::string& fingerprint) {
  auto orders = DeclaredOrders::load(path, log_warning);
  if (!orders) return orders.status();
  if (std::to_string(orders->fingerprint()) != fingerprint) {
    return Status(StatusCode::kInvalid,
                  path +
                      ": the node reads something else there, or in a list that it names; write "
                      "them where they are stored, and not while they are declared");
  }
  const std::size_t count = orders->size();
  log::info("{}: {} orders declared", path, count);
  if (on_declared_ && count != 0) on_declared_(*orders);
  const std::lock_guard lock(mutex_);
  declared_.push_back(std::move(orders.value()));
  note({path, fingerprint});
  has_declared_.store(true, std::memory_order_release);
  return count;
}

// Requires: the mutex.
void OrderDeclarations::note(const Said& said) {
  std::erase_if(said_, [&said](const Said& old) { return old.path == said.path; });
  said_.push_back(said);
}

std::vector<OrderDeclarations::Said> OrderDeclarations::snapshot() const {
  const std::lock_guard lock(mutex_);
  return said_;
}

void OrderDeclarations::restore(std::vector<Said> said) {
  const std::lock_guard lock(mutex_);
  said_ = std::move(said);
}

void OrderDeclarations::declare_again() {
  for (const Said& said : snapshot()) {
    if (const auto count = declare(said.path, said.fingerprint); !count)
      log_warning("not declared again: " + count.status().message());
  }
}

void OrderDeclarations::on_accesses(std::span<const ToldAccess>) {
  if (!has_declared_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(mutex_);
  for (DeclaredOrders& fresh : declared_) orders_.append(std::move(fresh));
  declared_.clear();
  has_declared_.store(false, std::memory_order_relaxed);
}

}  // namespace cairn::node
