// SPDX-License-Identifier: Apache-2.0
// The declared orders of the running node: those of its configuration, and those that users declare
// later, which join at the beginning of the next batch of accesses.
//
// Thread safety: declare() from any thread; orders() and on_accesses() in the event reader's
// thread, or before it runs. Ownership: owns the orders.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "base/status.h"
#include "service/learning/access_observer.h"
#include "service/learning/declared_orders.h"

namespace cairn::node {

class OrderDeclarations final : public AccessObserver {
 public:
  // Hears of declarations before they join, in the thread that declares them. Before the first
  // declare().
  using OnDeclared = std::function<void(DeclaredOrders& fresh)>;
  void set_on_declared(OnDeclared on_declared) { on_declared_ = std::move(on_declared); }

  // Reads the declarations that the configuration names. Before the first batch.
  Status load(const std::string& path);
  // Reads more of them, for files that are opened from now on; `fingerprint` is that of what their
  // author reads there. Returns: how many.
  Result<std::size_t> declare(const std::string& path, const std::string& fingerprint);

  // What users have declared, as a service leaves it to its successor: the latest of each file.
  struct Said {
    std::string path;
    std::string fingerprint;
  };
  std::vector<Said> snapshot() const;
  // Takes over what was declared to a dead service. It is read when declare_again() is called,
  // which may take its time: a file that says something else by now is left out, with a warning.
  void restore(std::vector<Said> said);
  void declare_again();

  DeclaredOrders& orders() { return orders_; }

  // The first of all observers: those behind it use orders().
  void on_accesses(std::span<const ToldAccess> batch) override;

 private:
  DeclaredOrders orders_;
  OnDeclared on_declared_;
  void note(const Said& said);

  mutable std::mutex mutex_;
  std::vector<DeclaredOrders> declared_;  // that have not joined yet
  std::vector<Said> said_;
  std::atomic<bool> has_declared_{false};
};

}  // namespace cairn::node
