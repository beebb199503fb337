// SPDX-License-Identifier: Apache-2.0
#include "service/learning/declared_orders.h"

#include <errno.h>
#include <fnmatch.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "base/check.h"
#include "base/kept_file.h"
#include "policy/orders/item_list.h"
#include "service/learning/read_events.h"

namespace cairn::node {
namespace {

// So many items at the beginning of an epoch are looked through for what a program reads first.
constexpr std::size_t kFirstItems = 4;

// A pattern without a slash may be one of the last component, as in rules.
bool matches(const std::string& pattern, const std::string& path) {
  if (::fnmatch(pattern.c_str(), path.c_str(), 0) == 0) return true;
  return pattern.find('/') == std::string::npos &&
         ::fnmatch(pattern.c_str(), path.c_str() + path.rfind('/') + 1, 0) == 0;
}

// A list that has no absolute path lies where the file does that names it.
void beside(const std::string& file, std::string* list) {
  if (list->empty() || list->front() == '/') return;
  *list = file.substr(0, file.rfind('/') + 1) + *list;
}

}  // namespace

Result<DeclaredOrders> DeclaredOrders::load(const std::string& path, Complain complain) {
  DeclaredOrders orders;
  orders.complain_ = std::move(complain);
  orders.path_ = path;
  if (path.empty()) return orders;
  if (const Status status = check_text_file(path); !status) return status;
  std::ifstream file(path);
  if (!file) return Status::from_errno(errno, "cannot read the orders in " + path);
  std::string line;
  for (unsigned number = 1; std::getline(file, line); ++number) {
    const std::size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string::npos || line[begin] == '#') continue;
    const std::string place = path + ":" + std::to_string(number);
    if (const Status status = orders.add(place, line.substr(begin)); !status) return status;
  }
  return orders;
}

std::uint64_t DeclaredOrders::fingerprint() const {
  std::string sums;
  const auto add = [&sums](std::string_view bytes) { append_bytes(&sums, fnv1a(bytes)); };
  for (const Entry& entry : entries_) {
    add(entry.pattern);
    add(entry.text);
    const std::vector<std::uint32_t>& listed = entry.order.listed();
    add({reinterpret_cast<const char*>(listed.data()), listed.size() * sizeof(listed[0])});
    for (const std::string& name : entry.order.item_files()) add(name);
  }
  return fnv1a(sums);
}

std::vector<std::string> DeclaredOrders::sources() const {
  std::vector<std::string> paths = {path_};
  for (const Entry& entry : entries_) {
    const OrderDeclaration& said = entry.order.declaration();
    if (!said.list_path.empty()) paths.push_back(said.list_path);
    if (said.layout.is_files()) paths.push_back(said.layout.files_path);
  }
  return paths;
}

// Lists may be written anew under their names.
bool DeclaredOrders::say_the_same(const Entry& old, const Entry& fresh) {
  return !old.is_refuted && old.pattern == fresh.pattern && old.text == fresh.text &&
         old.order.has_same_lists(fresh.order);
}

void DeclaredOrders::append(DeclaredOrders&& other) {
  CAIRN_CHECK(&other != this);
  std::vector<Entry> fresh;
  std::vector<bool> stays(entries_.size());
  for (Entry& entry : other.entries_) {
    const auto same = std::find_if(entries_.begin(), entries_.end(),
                                   [&](Entry& old) { return say_the_same(old, entry); });
    if (same == entries_.end()) {
      fresh.push_back(std::move(entry));
    } else {
      stays[static_cast<std::size_t>(same - entries_.begin())] = true;
    }
  }
  for (std::size_t number = 0; number < entries_.size(); ++number) {
    Entry& old = entries_[number];
    const bool is_replaced = std::any_of(fresh.begin(), fresh.end(), [&](const Entry& entry) {
      return entry.pattern == old.pattern;
    });
    if (is_replaced && !stays[number] && !old.is_refuted) forget(&old);
  }
  for (Entry& entry : fresh) entries_.push_back(std::move(entry));
  other.entries_.clear();
}

// Its number and its pattern hold; of a list that was long nothing does.
void DeclaredOrders::forget(Entry* entry) {
  CAIRN_CHECK(!entry->is_refuted);
  entry->is_refuted = true;
  ++refuted_;
  entry->order.forget_lists();
  entry->item_of = {};
  entry->progress = {};
  entry->made = {};
}

Status DeclaredOrders::add(const std::string& place, const std::string& line) {
  const std::size_t end = line.find_first_of(" \t");
  if (end == std::string::npos) {
    return Status(StatusCode::kInvalid,
                  place +
                      ": a pattern without a declaration; write such as: /data/train.bin "
                      "torch-random seed=42 items=60000 epochs=10 item-bytes=110K");
  }
  const auto declaration = parse_order(line.substr(end + 1));
  if (!declaration)
    return Status(StatusCode::kInvalid, place + ": " + declaration.status().message());
  OrderDeclaration said = declaration.value();
  beside(path_, &said.list_path);
  beside(path_, &said.layout.files_path);
  const bool is_of_files = said.layout.is_files() || said.is_list_of_files;
  // Which of the workers opens a file does not matter.
  if (is_of_files) said.workers = 1;
  if (!is_of_files && !said.layout.is_packed()) {
    return Status(StatusCode::kInvalid, place +
                                            ": it does not say where the items are; add "
                                            "item-bytes=SIZE for one packed file, or "
                                            "item-files=FILE");
  }
  auto order = EpochOrder::make(said);
  if (!order) return Status(StatusCode::kInvalid, place + ": " + order.status().message());
  Entry entry{.place = place,
              .pattern = line.substr(0, end),
              .text = line.substr(end + 1),
              .order = std::move(order.value())};
  const std::vector<std::string>& files = entry.order.item_files();
  for (std::uint32_t item = 0; item < files.size(); ++item)
    entry.item_of.emplace(files[item], item);
  entries_.push_back(std::move(entry));
  return Status::ok();
}

bool DeclaredOrders::has_order_of(const std::string& path) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return !entry.is_refuted && entry.item_of.empty() && matches(entry.pattern, path);
  });
}

BlockRun DeclaredOrders::run_of(const Entry& entry, std::uint32_t item) {
  const ItemRange range = entry.order.declaration().layout.range_of(item);
  return run_of_bytes(range.offset, range.bytes);
}

// The worker whose part of the epoch has `first` nearest to its beginning, if that is nearer than
// what was found before.
void DeclaredOrders::find_worker(const Entry& entry, const std::vector<std::uint32_t>& items,
                                 std::uint32_t epoch, BlockRun first, Beginning* found) {
  const auto is_there = [&](std::uint64_t place) {
    if (place >= items.size()) return false;
    const BlockRun run = run_of(entry, items[place]);
    return first.first >= run.first && first.first < run.end();
  };
  for (std::uint32_t worker = 0; worker < entry.order.workers(); ++worker) {
    const std::size_t end = std::min(found->at, kFirstItems);
    for (std::size_t at = 0; at < end; ++at) {
      if (!is_there(entry.order.place_of(worker, at))) continue;
      *found = {epoch, worker, at};
      break;
    }
  }
}

DeclaredOrders::Beginning DeclaredOrders::find_beginning(Entry* entry, BlockRun first,
                                                         std::uint32_t next_epoch) {
  Beginning found;
  // The next epoch, the one before it (another process is at it), or the first.
  for (const std::uint32_t epoch : {next_epoch, next_epoch == 0 ? 0 : next_epoch - 1, 0U}) {
    const auto items = entry->order.order(epoch);
    if (items) find_worker(*entry, items.value(), epoch, first, &found);
    if (found.at == 0) break;
  }
  return found;
}

DeclaredOrder DeclaredOrders::order_of_epochs(Entry* entry, const Beginning& beginning) {
  const EpochOrder& order = entry->order;
  CAIRN_CHECK(beginning.worker < order.workers());
  entry->made.resize(order.workers());
  Made& made = entry->made[beginning.worker];
  if (DeclaredOrder runs = made.runs.lock(); runs != nullptr && made.epoch == beginning.epoch)
    return runs;
  const std::uint64_t runs_of_epoch = order.items_per_epoch() / order.workers();
  auto runs = std::make_shared<std::vector<BlockRun>>();
  for (std::uint32_t epoch = beginning.epoch; epoch < order.epochs(); ++epoch) {
    if (runs->size() + runs_of_epoch > kRunsMax && epoch != beginning.epoch) break;
    const auto items = entry->order.order(epoch);
    if (!items) break;
    std::uint64_t place = order.place_of(beginning.worker, 0);
    for (std::uint64_t at = 0; place < items->size();
         place = order.place_of(beginning.worker, ++at))
      runs->push_back(run_or_item(*entry, (*items)[place]));
  }
  made = {runs, beginning.epoch};
  return runs;
}

DeclaredOrder DeclaredOrders::order_from(const std::string& path, BlockRun first,
                                         OrderReader reader) {
  for (Entry& entry : entries_) {
    if (entry.is_refuted || !entry.item_of.empty() || !matches(entry.pattern, path)) {
      continue;
    }
    std::uint32_t& next_epoch = entry.next_epoch[static_cast<std::size_t>(reader)];
    const Beginning found = find_beginning(&entry, first, next_epoch);
    if (found.at == SIZE_MAX) continue;
    next_epoch = found.epoch + 1;
    return order_of_epochs(&entry, found);
  }
  return nullptr;
}

std::optional<DeclaredOrders::FilePlace> DeclaredOrders::place_of_file(
    const std::string& path) const {
  for (std::size_t number = 0; number < entries_.size(); ++number) {
    const Entry& entry = entries_[number];
    const auto found = entry.item_of.find(path);
    if (found != entry.item_of.end() && !entry.is_refuted) return FilePlace{number, found->second};
  }
  return std::nullopt;
}

DeclaredOrder DeclaredOrders::files_from(const FilePlace& place, OrderReader reader) {
  CAIRN_CHECK(place.declaration < entries_.size());
  Entry& entry = entries_[place.declaration];
  std::uint32_t& next_epoch = entry.next_epoch[static_cast<std::size_t>(reader)];
  for (const std::uint32_t epoch : {next_epoch, next_epoch == 0 ? 0 : next_epoch - 1, 0U}) {
    const auto items = entry.order.order(epoch);
    if (!items) continue;
    const auto count = std::min(items->size(), FileProgress::kAhead);
    const auto end = items->begin() + static_cast<std::ptrdiff_t>(count);
    if (std::find(items->begin(), end, place.item) == end) continue;
    next_epoch = epoch + 1;
    return order_of_epochs(&entry, Beginning{epoch, 0, 0});
  }
  return nullptr;
}

void DeclaredOrders::refute(const std::string& path) {
  for (Entry& entry : entries_) {
    const bool speaks_of_it =
        entry.item_of.empty() ? matches(entry.pattern, path) : entry.item_of.contains(path);
    if (speaks_of_it && !entry.is_refuted) drop(&entry, path);
  }
}

void DeclaredOrders::drop(Entry* entry, const std::string& path) {
  const bool may_have_workers = entry->item_of.empty() && entry->order.workers() == 1;
  forget(entry);
  if (!complain_) return;
  complain_(entry->place + ": the order declared for " + path +
            " is not the one in which it is read; it is not followed any more" +
            (may_have_workers ? ". If a DataLoader has num_workers=N, say workers=N and its batch="
                              : ""));
}

std::vector<std::string> DeclaredOrders::first_files(std::size_t count) {
  std::vector<std::string> files;
  for (Entry& entry : entries_) {
    if (entry.item_of.empty()) continue;
    const auto items = entry.order.order(0);
    if (!items) continue;
    const std::vector<std::string>& names = entry.order.item_files();
    for (std::size_t at = 0; at < std::min(count, items->size()); ++at)
      files.push_back(names[(*items)[at]]);
  }
  return files;
}

// Each rank of a job may have declared its own part of the same files.
std::vector<std::string> DeclaredOrders::files_after(const std::string& path, std::size_t count) {
  std::vector<std::string> files;
  std::vector<std::pair<Entry*, std::uint32_t>> places;
  Entry* followed = nullptr;
  std::uint32_t item_of_followed = 0;
  FileProgress::Place nearest;
  for (Entry& entry : entries_) {
    const auto found = entry.item_of.find(path);
    if (found == entry.item_of.end() || entry.is_refuted) continue;
    places.emplace_back(&entry, found->second);
    const FileProgress::Place place = entry.progress.find(entry.order, found->second);
    if (place.distance >= nearest.distance) continue;
    nearest = place;
    followed = &entry;
    item_of_followed = found->second;
  }
  if (followed != nullptr) followed->progress.go_to(followed->order, item_of_followed, nearest);
  for (std::size_t at = 0; at < places.size() && followed == nullptr; ++at) {
    const auto& [entry, item] = places[at];
    if (entry->progress.begins(entry->order, item)) followed = entry;
  }
  if (followed != nullptr) {
    const std::vector<std::string>& names = followed->order.item_files();
    followed->progress.following(count, [&](std::uint32_t item) { files.push_back(names[item]); });
  } else {
    for (const auto& [entry, item] : places) entry->progress.not_found();
  }
  for (const auto& [entry, item] : places) {
    if (entry->progress.is_doubted()) drop(entry, path);
  }
  return files;
}

}  // namespace cairn::node
