// SPDX-License-Identifier: Apache-2.0
#include "service/logged_files/name_story.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace cairn::node {

NameStory::Name& NameStory::at(const std::string& text) {
  const auto [place, is_new] = names_.try_emplace(text);
  Name& name = place->second;
  if (!is_new) return name;
  const auto known = known_.names.find(text);
  const bool is_known = known != known_.names.end();
  if (!is_known && !known_.has_all) return name;
  name.before = kNothing;
  if (is_known && known->second) {
    name.before = static_cast<int>(things_.size());
    things_.push_back({known->second, false});
  }
  name.now = name.before;
  return name;
}

// Nobody has seen a file that came and went between two looks, and its name may come back.
bool NameStory::lose(int thing) {
  CAIRN_CHECK(thing >= 0);
  return things_[static_cast<std::size_t>(thing)].file.has_value();
}

bool NameStory::move_here(std::uint32_t move, Name& name) {
  const auto moved = moving_.find(move);
  if (moved == moving_.end() || name.now == kUnknown) return false;
  if (name.now >= 0 && !lose(name.now)) return false;
  name.now = moved->second;
  moving_.erase(moved);
  return true;
}

bool NameStory::hear(const NameEvent& event) {
  const bool has_words = event.deed != NameDeed::kBeyondWords;
  if (has_words && event.name.size() <= durable::kNameBytesMax) {
    Name& name = at(event.name);
    bool is_told = false;
    switch (event.deed) {
      case NameDeed::kMade:
        // Nothing can be made where something is.
        if (name.before == kUnknown && name.now == kUnknown) name = {kNothing, kNothing};
        is_told = name.now == kNothing;
        name.now = static_cast<int>(things_.size());
        things_.push_back({});
        break;
      case NameDeed::kRemoved:
        is_told = name.now >= 0 && lose(name.now);
        name.now = kNothing;
        break;
      case NameDeed::kMovedAway:
        is_told = name.now >= 0 && moving_.emplace(event.move, name.now).second;
        name.now = kNothing;
        break;
      case NameDeed::kMovedHere:
        is_told = move_here(event.move, name);
        break;
      case NameDeed::kBeyondWords:
        break;
    }
    if (is_told) return !is_lost_;
  }
  is_lost_ = true;
  return false;
}

std::vector<std::string> NameStory::touched() const {
  std::vector<std::string> touched;
  for (const auto& entry : names_) touched.push_back(entry.first);
  return touched;
}

// The directory has to have what the events have left in it.
bool NameStory::settle(int number, const std::optional<durable::NamedFile>& found) {
  if (number == kNothing) return !found;
  if (number < 0 || !found) return false;
  Thing& thing = things_[static_cast<std::size_t>(number)];
  if (std::exchange(thing.is_named, true)) return false;
  if (thing.file) return *thing.file == *found;
  CAIRN_CHECK(!found->handle.empty() || found->id.inode != 0);
  const auto is_it = [&found](const Thing& other) { return other.file == found; };
  if (std::any_of(things_.begin(), things_.end(), is_it)) return false;
  thing.file = found;
  return true;
}

std::optional<std::vector<durable::NameChange>> NameStory::end(const Look& look) {
  if (is_lost_ || !moving_.empty()) return std::nullopt;
  std::vector<durable::NameChange> changes;
  for (const auto& [text, name] : names_) {
    const auto found = look(text);
    if (!found || !settle(name.now, *found)) return std::nullopt;
    durable::NameChange change;
    change.name = text;
    change.after = *found;
    CAIRN_CHECK(name.before != kUnknown);
    if (name.before >= 0) change.before = things_[static_cast<std::size_t>(name.before)].file;
    changes.push_back(std::move(change));
  }
  return changes;
}

}  // namespace cairn::node
