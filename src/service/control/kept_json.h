// SPDX-License-Identifier: Apache-2.0
// What a service leaves to its successor, as JSON values: packed as CBOR, since paths are bytes and
// JSON text takes only UTF-8.
//
// Thread safety: pure functions. Errors: readers throw Json::exception where a value is not there
// or of another kind; what the values mean is checked by the registries that take them.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "service/attachment/run_table.h"
#include "service/capacity/account_registry.h"
#include "service/control/json.h"
#include "service/learning/order_declarations.h"
#include "service/treatment/rule_registry.h"
#include "service/treatment/scratch_space.h"

namespace cairn::node {

std::string packed(const Json& value);
// A discarded value when the text is damaged.
Json unpacked(const std::string& text);

std::uint64_t number_at(const Json& object, const char* field);
// The largest there is instead of one that is too large; nobody takes that one.
std::uint32_t small_number_at(const Json& object, const char* field);

Json run_to_json(const Run& run);
Run run_from_json(const Json& object);

Json accounts_to_json(const AccountsSnapshot& accounts);
AccountsSnapshot accounts_from_json(const Json& object);

Json rules_to_json(const std::vector<FileRule>& rules);
// Errors: kInvalid names the rule and the field.
Result<std::vector<FileRule>> rules_from_json(const Json& list);

Json scratch_to_json(const ScratchSpace::Snapshot& scratch);
ScratchSpace::Snapshot scratch_from_json(const Json& object);

Json orders_to_json(const std::vector<OrderDeclarations::Said>& said);
std::vector<OrderDeclarations::Said> orders_from_json(const Json& list);

}  // namespace cairn::node
