// SPDX-License-Identifier: Apache-2.0
// The rules that hold on a node, and their compiled form for the clients: what `cairn set` said
// (latest first), then the rules of each run, then those of the node's schema.
//
// Thread safety: all functions from any thread. Ownership: owns its rules, borrows the memory.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/file_rule.h"
#include "base/node_config.h"
#include "base/status.h"
#include "memory/tiers/node_memory.h"
#include "service/capacity/account_registry.h"

namespace cairn::node {

// All rules of a node, as a service leaves them to its successor.
struct RulesSnapshot {
  std::vector<FileRule> live;  // latest first
  std::map<std::uint32_t, std::vector<FileRule>> of_runs;
  std::vector<FileRule> schema;
};

class RuleRegistry {
 public:
  // The number of a placement policy in the node's plans; an error says why there is none.
  using PolicyNumber = std::function<Result<std::uint8_t>(const std::string& name)>;

  RuleRegistry(const NodeMemory& memory, const NodeConfig& config, AccountRegistry& accounts,
               PolicyNumber number_of_policy);

  // Takes the node's own rules into force. Errors: names the rule and what is wrong with it; then
  // none of them holds, and nothing is reserved by them.
  Status load(const std::vector<FileRule>& rules);
  // The rules of one run; they end with it.
  Status begin_run(std::uint32_t run, const std::vector<FileRule>& rules);
  void end_run(std::uint32_t run);
  // A rule of the running node, before all others. What an earlier one said of the same pattern and
  // this one does not say stays.
  Status set(const FileRule& rule);
  // The rules that limit how long files live, in order.
  std::vector<FileRule> lifetimes() const;
  // How many rules there are.
  std::size_t size() const;
  RulesSnapshot snapshot() const;
  // Takes over the rules of a dead service, in one step for those who read them meanwhile; what is
  // reserved for a rule that is not among them is reserved no more. Requires: no rule holds yet,
  // and the accounts have been restored, so that each rule finds its own.
  // Errors: as of load().
  Status restore(const RulesSnapshot& kept);
  // Which rule decides which property of a file, in the order of the properties' bits; those of
  // parts stand in the order in which they decide, before that of the whole file.
  // `directories` are those that are buffered; the file's access is not known, so rules that ask
  // for one count.
  struct Decision {
    RuleRecord::Property property{};
    FileRule rule;
  };
  std::vector<Decision> decisions(const std::string& path, std::uint64_t size,
                                  const std::vector<std::string>& directories) const;

  // A rule's properties over `otherwise`.
  Result<ObjectHandling> handling_of(const FileRule& rule, ObjectHandling otherwise) const;

 private:
  struct Entry {
    FileRule rule;
    RuleRecord record;
    RuleKey key;  // of its account, if it reserves something
  };
  Status add_part(const FileRule& rule, const ObjectHandling& handling, RuleRecord* record) const;
  static Status check_parts(const std::vector<Entry>& entries);
  Result<Entry> compile(const FileRule& rule, std::uint32_t run) const;
  Result<std::vector<Entry>> compile_all(const std::vector<FileRule>& rules,
                                         std::uint32_t run) const;
  Result<TierId> tier_named(const std::string& name) const;
  Status open_account(Entry* entry) const;
  void close_accounts(const std::vector<Entry>& entries) const;
  Result<std::vector<Entry>> recompile(const std::vector<FileRule>& rules, std::uint32_t run,
                                       bool has_positions) const;
  void close_accounts_of_none() const;
  Status room_for(std::size_t more) const;
  std::vector<const Entry*> in_order() const;
  void publish() const;

  const NodeMemory& memory_;
  const NodeConfig& config_;
  AccountRegistry& accounts_;
  const PolicyNumber number_of_policy_;
  mutable std::mutex parts_mutex_;  // one thread at a time adds to the table of parts
  mutable std::mutex mutex_;
  std::vector<Entry> live_;
  std::map<std::uint32_t, std::vector<Entry>> runs_;
  std::vector<Entry> schema_;
};

}  // namespace cairn::node
