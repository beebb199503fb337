// SPDX-License-Identifier: Apache-2.0
#include "policy/orders/order_declaration.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include "base/size_text.h"
#include "policy/orders/declaration_words.h"

namespace cairn {
namespace {

constexpr const char* kKindNames[kOrderKinds] = {"torch-random", "torch-distributed",
                                                 "numpy-permutation", "numpy-generator", "list"};

Status refusal(const std::string& message) {
  return Status(StatusCode::kInvalid, "order: " + message);
}

Status refused_value(std::string_view name, std::string_view value, const std::string& advice) {
  return refusal(std::string(name) + "=" + std::string(value) + ": " + advice);
}

template <typename Number>
std::optional<Number> decimal(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Sets a number of [lowest, highest].
template <typename Number>
Status set_number(std::string_view name, std::string_view text, std::uint64_t lowest,
                  std::uint64_t highest, Number* number) {
  const auto value = decimal<std::uint64_t>(text);
  if (!value || *value < lowest || *value > highest) {
    return refused_value(
        name, text,
        "write a number from " + std::to_string(lowest) + " to " + std::to_string(highest));
  }
  *number = static_cast<Number>(*value);
  return Status::ok();
}

Status set_switch(std::string_view name, std::string_view text, bool* is_on) {
  if (text != "yes" && text != "no" && text != "true" && text != "false") {
    return refused_value(name, text, "write yes or no");
  }
  *is_on = text == "yes" || text == "true";
  return Status::ok();
}

Status set_size(std::string_view name, std::string_view text, std::uint64_t* bytes) {
  const auto size = parse_size(text);
  if (!size) return refused_value(name, text, "write a size in bytes, such as 3072 or 150K");
  *bytes = *size;
  return Status::ok();
}

// A DistributedSampler adds the epoch, for which there is room here.
std::uint64_t highest_seed(OrderKind kind) {
  if (kind == OrderKind::kNumpyPermutation) return UINT32_MAX;
  return kind == OrderKind::kTorchDistributed ? std::uint64_t{INT64_MAX} : UINT64_MAX;
}

Status set_seed(std::string_view text, OrderDeclaration* order) {
  const bool is_torch =
      order->kind == OrderKind::kTorchRandom || order->kind == OrderKind::kTorchDistributed;
  if (is_torch && text.starts_with('-')) {
    const auto negative = decimal<std::int64_t>(text);
    if (!negative) return refused_value("seed", text, "torch takes none below -2^63");
    order->seed = static_cast<std::uint64_t>(*negative);
    return Status::ok();
  }
  return set_number("seed", text, 0, highest_seed(order->kind), &order->seed);
}

Status set_loader(std::string_view text, OrderDeclaration* order) {
  constexpr std::string_view kNames[] = {"each-epoch", "first-epoch", "none"};
  const auto* const found = std::find(std::begin(kNames), std::end(kNames), text);
  if (found == std::end(kNames)) {
    return refused_value("loader", text,
                         "write each-epoch for a DataLoader, first-epoch for one with persistent "
                         "workers, or none for a sampler by itself");
  }
  order->loader = static_cast<TorchLoader>(found - std::begin(kNames));
  return Status::ok();
}

// Reads one of two words; the second turns the switch on.
Status set_choice(std::string_view name, std::string_view text, std::string_view off,
                  std::string_view on, bool* is_on) {
  if (text != off && text != on) {
    return refused_value(name, text, "write " + std::string(off) + " or " + std::string(on));
  }
  *is_on = text == on;
  return Status::ok();
}

Status set_path(std::string_view name, std::string_view text, std::string* path) {
  if (text.empty() || text.find('\0') != text.npos) {
    return refused_value(name, text, "write the path of a text file");
  }
  *path = text;
  return Status::ok();
}

static_assert(static_cast<unsigned>(OrderKind::kList) + 1 == kOrderKinds, "each kind has a bit");
constexpr unsigned bit(OrderKind kind) { return 1U << static_cast<unsigned>(kind); }
constexpr unsigned kAnyKind = (1U << kOrderKinds) - 1;
constexpr unsigned kSeededKinds = kAnyKind & ~bit(OrderKind::kList);
constexpr unsigned kNumpyKinds =
    bit(OrderKind::kNumpyPermutation) | bit(OrderKind::kNumpyGenerator);

struct OrderField {
  std::string_view name;
  unsigned kinds;     // that may have it
  unsigned required;  // that must have it
  bool is_switch;
  Status (*set)(std::string_view text, OrderDeclaration* order);
};

constexpr OrderField kFields[] = {
    {"seed", kSeededKinds, kSeededKinds & ~bit(OrderKind::kTorchDistributed), false, set_seed},
    {"items", kAnyKind, kSeededKinds, false,
     [](std::string_view text, OrderDeclaration* order) {
       return set_number("items", text, 1, kOrderItemsMax, &order->items);
     }},
    {"epochs", kAnyKind, 0, false,
     [](std::string_view text, OrderDeclaration* order) {
       return set_number("epochs", text, 1, kOrderEpochsMax, &order->epochs);
     }},
    {"loader", bit(OrderKind::kTorchRandom), 0, false, set_loader},
    {"generator", bit(OrderKind::kTorchRandom), 0, false,
     [](std::string_view text, OrderDeclaration* order) {
       return set_choice("generator", text, "default", "own", &order->has_own_generator);
     }},
    {"drawn", bit(OrderKind::kTorchRandom), 0, false,
     [](std::string_view text, OrderDeclaration* order) {
       return set_number("drawn", text, 0, std::uint64_t{1} << 40, &order->drawn_before);
     }},
    {"replicas", bit(OrderKind::kTorchDistributed), bit(OrderKind::kTorchDistributed), false,
     [](std::string_view text, OrderDeclaration* order) {
       return set_number("replicas", text, 1, kOrderItemsMax, &order->replicas);
     }},
    {"rank", bit(OrderKind::kTorchDistributed), bit(OrderKind::kTorchDistributed), false,
     [](std::string_view text, OrderDeclaration* order) {
       return set_number("rank", text, 0, kOrderItemsMax - 1, &order->rank);
     }},
    {"drop-last", bit(OrderKind::kTorchDistributed), 0, true,
     [](std::string_view text, OrderDeclaration* order) {
       return set_switch("drop-last", text, &order->drops_last);
     }},
    {"shuffle", bit(OrderKind::kTorchDistributed), 0, true,
     [](std::string_view text, OrderDeclaration* order) {
       return set_switch("shuffle", text, &order->shuffles);
     }},
    {"reseed", kNumpyKinds, 0, true,
     [](std::string_view text, OrderDeclaration* order) {
       return set_switch("reseed", text, &order->reseeds);
     }},
    {"in-place", kNumpyKinds, 0, true,
     [](std::string_view text, OrderDeclaration* order) {
       return set_switch("in-place", text, &order->is_in_place);
     }},
    {"lines", bit(OrderKind::kList), 0, false,
     [](std::string_view text, OrderDeclaration* order) {
       return set_choice("lines", text, "numbers", "files", &order->is_list_of_files);
     }},
    {"workers", kAnyKind, 0, false,
     [](std::string_view text, OrderDeclaration* order) {
       return set_number("workers", text, 1, kOrderWorkersMax, &order->workers);
     }},
    {"batch", kAnyKind, 0, false,
     [](std::string_view text, OrderDeclaration* order) {
       return set_number("batch", text, 1, kOrderItemsMax, &order->batch);
     }},
    {"item-bytes", kAnyKind, 0, false,
     [](std::string_view text, OrderDeclaration* order) {
       CAIRN_RETURN_IF_ERROR(set_size("item-bytes", text, &order->layout.item_bytes));
       if (order->layout.is_packed()) return Status::ok();
       return refused_value("item-bytes", text, "an item has at least one byte");
     }},
    {"header", kAnyKind, 0, false,
     [](std::string_view text, OrderDeclaration* order) {
       return set_size("header", text, &order->layout.header_bytes);
     }},
    {"item-files", kAnyKind, 0, false,
     [](std::string_view text, OrderDeclaration* order) {
       return set_path("item-files", text, &order->layout.files_path);
     }},
};

std::string field_names(OrderKind kind) {
  std::string names;
  for (const OrderField& field : kFields) {
    if ((field.kinds & bit(kind)) == 0) continue;
    names += names.empty() ? "" : ", ";
    names += field.name;
  }
  return names;
}

// The bits of the fields of kFields that were given.
using GivenFields = std::uint32_t;
static_assert(std::size(kFields) <= 32);

Status set_field(const DeclarationWord& word, GivenFields* given, OrderDeclaration* order) {
  std::string name = word.name;
  std::replace(name.begin(), name.end(), '_', '-');
  for (std::size_t index = 0; index < std::size(kFields); ++index) {
    const OrderField& field = kFields[index];
    if (word.is_quoted || field.name != name || (field.kinds & bit(order->kind)) == 0) continue;
    if ((*given >> index & 1) != 0) return refusal(name + "= is given twice; leave one out");
    *given |= GivenFields{1} << index;
    if (!word.value && !field.is_switch) {
      return refusal(name + " has no value; write " + name + "=VALUE");
    }
    return field.set(word.value ? std::string_view(*word.value) : "yes", order);
  }
  return refusal("\"" + word.name + "\" is no field of " + name_of(order->kind) + "; it has " +
                 field_names(order->kind));
}

bool was_given(GivenFields given, std::string_view name) {
  for (std::size_t index = 0; index < std::size(kFields); ++index) {
    if (kFields[index].name == name) return (given >> index & 1) != 0;
  }
  return false;
}

Status check_required(const OrderDeclaration& order, GivenFields given) {
  for (const OrderField& field : kFields) {
    if ((field.required & bit(order.kind)) != 0 && !was_given(given, field.name)) {
      return refusal(std::string(field.name) + "= is missing; " + name_of(order.kind) +
                     " cannot be known without it");
    }
  }
  return Status::ok();
}

// Each epoch of a numpy order that is seeded anew begins with seed + epoch.
Status check_last_seed(const OrderDeclaration& order) {
  const std::uint64_t highest = highest_seed(order.kind);
  if (!order.reseeds || order.seed <= highest - (order.epochs - 1)) return Status::ok();
  return refused_value("seed", std::to_string(order.seed),
                       "the seed of the last epoch, seed + epochs - 1, is more than " +
                           std::to_string(highest) + "; choose a smaller one");
}

Status check_together(const OrderDeclaration& order, GivenFields given) {
  if (order.rank >= order.replicas) {
    return refused_value(
        "rank", std::to_string(order.rank),
        "ranks go from 0 to replicas - 1, which is " + std::to_string(order.replicas - 1));
  }
  if (order.layout.is_files() && order.layout.is_packed()) {
    return refusal("item-bytes= and item-files= contradict each other; leave one out");
  }
  if (was_given(given, "batch") && !was_given(given, "workers")) {
    return refusal(
        "batch= is of workers that take turns; say workers= too, or leave it out: one process "
        "reads "
        "the items in their order whatever the batches are");
  }
  if (was_given(given, "header") && !order.layout.is_packed()) {
    return refusal("header= is of a packed file; say item-bytes= too, or leave it out");
  }
  if (order.is_list_of_files && (order.layout.is_files() || order.layout.is_packed())) {
    return refusal("lines=files says where the items are; leave item-files= and item-bytes= out");
  }
  CAIRN_RETURN_IF_ERROR(check_last_seed(order));
  return check_layout(order.layout, order.items);
}

std::string all_kind_names() {
  std::string names;
  for (unsigned index = 0; index < kOrderKinds; ++index) {
    names += index == 0 ? "" : index + 1 == kOrderKinds ? " or " : ", ";
    names += kKindNames[index];
  }
  return names;
}

}  // namespace

const char* name_of(OrderKind kind) { return kKindNames[static_cast<unsigned>(kind)]; }

Status check_layout(const ItemLayout& layout, std::uint64_t items) {
  constexpr std::uint64_t kBytesMax = INT64_MAX;
  if (!layout.is_packed() || items == 0) return Status::ok();
  if (layout.header_bytes <= kBytesMax &&
      layout.item_bytes <= (kBytesMax - layout.header_bytes) / items) {
    return Status::ok();
  }
  return refused_value("item-bytes", std::to_string(layout.item_bytes),
                       "a file of " + std::to_string(items) +
                           " such items would not end below 2^63 bytes; write the size of one "
                           "item");
}

Result<OrderDeclaration> parse_order(std::string_view text) {
  auto words = declaration_words(text);
  if (!words) return words.status();
  if (words->empty()) return refusal("nothing is declared; write " + all_kind_names());
  const auto* const kind =
      std::find_if(std::begin(kKindNames), std::end(kKindNames),
                   [&](const char* name) { return words->front().name == name; });
  if (kind == std::end(kKindNames) || words->front().value) {
    return refusal("\"" + words->front().name + "\" is no kind of order; write " +
                   all_kind_names());
  }
  OrderDeclaration order;
  order.kind = static_cast<OrderKind>(kind - std::begin(kKindNames));
  std::size_t next = 1;
  if (order.kind == OrderKind::kList) {
    if (words->size() < 2) return refusal("list names no file; write list FILE");
    // The word behind `list` is a path whatever it looks like.
    const DeclarationWord& path = (*words)[next++];
    CAIRN_RETURN_IF_ERROR(
        set_path("list", path.value ? path.name + "=" + *path.value : path.name, &order.list_path));
  }
  GivenFields given = 0;
  for (; next < words->size(); ++next) {
    CAIRN_RETURN_IF_ERROR(set_field((*words)[next], &given, &order));
  }
  CAIRN_RETURN_IF_ERROR(check_required(order, given));
  CAIRN_RETURN_IF_ERROR(check_together(order, given));
  return order;
}

}  // namespace cairn
