// SPDX-License-Identifier: Apache-2.0
#include "service/learning/stream_table.h"

#include <algorithm>
#include <iterator>

#include "service/learning/read_events.h"

namespace cairn::node {

void StreamTable::follow(std::span<ToldAccess> batch) {
  CAIRN_CHECK(ended_.empty());
  for (ToldAccess& told : batch) follow(told);
}

void StreamTable::follow(ToldAccess& told) {
  const AccessEvent& event = told.event;
  // A client writes the events: the number may be any.
  const bool is_known = event.object != ObjectIndex::kNone &&
                        event.stream != DescriptionIndex::kNone &&
                        raw(event.stream) < memory_.descriptions().capacity();
  if (!is_known) return;
  if (event.kind == AccessKind::kClose) return close(told);
  const bool is_of_stream =
      event.kind == AccessKind::kOpen || event.kind == AccessKind::kAdvice || is_read(event.kind);
  if (!is_of_stream) return;
  Description& description = descriptions_[event.stream];
  if (description.object != event.object) {
    // The close of another file's description was lost.
    if (description.object != ObjectIndex::kNone) told.ends.closed.push_back(description.object);
    description.object = event.object;
    told.opens = true;
  }
  end_streams(description, &told.ends, [&](const AccessStream& stream) {
    return stream.owner() == event.owner &&
           (event.kind == AccessKind::kOpen || stream.object() != event.object);
  });
  begin(description, told);
}

// Unless the stream has begun.
void StreamTable::begin(Description& description, ToldAccess& told) {
  const AccessEvent& event = told.event;
  if (Streams::iterator* found = find(description, event.owner); found != nullptr) {
    streams_.splice(streams_.end(), streams_, *found);
    told.stream = &**found;
    return;
  }
  make_room_for_one(&told.ends);
  streams_.emplace_back(event.owner, event.stream, event.object);
  description.streams.push_back(std::prev(streams_.end()));
  told.stream = &streams_.back();
  CAIRN_CHECK(streams_.size() <= kStreamsMax);
}

StreamTable::Streams::iterator* StreamTable::find(Description& description, Owner owner) {
  const auto found =
      std::find_if(description.streams.begin(), description.streams.end(),
                   [&](Streams::iterator stream) { return stream->owner() == owner; });
  return found == description.streams.end() ? nullptr : &*found;
}

template <typename IsOver>
void StreamTable::end_streams(Description& description, StreamEnds* ends, IsOver&& is_over) {
  std::erase_if(description.streams, [&](Streams::iterator stream) {
    if (!is_over(*stream)) return false;
    ended_.splice(ended_.end(), streams_, stream);
    ends->streams.push_back(&*stream);
    return true;
  });
}

void StreamTable::make_room_for_one(StreamEnds* ends) {
  if (streams_.size() < kStreamsMax) return;
  const AccessStream& oldest = streams_.front();
  const auto description = descriptions_.find(oldest.description());
  CAIRN_CHECK(description != descriptions_.end());
  end_streams(description->second, ends,
              [&](const AccessStream& stream) { return &stream == &oldest; });
  CAIRN_CHECK(streams_.size() < kStreamsMax);
  (void)drop_if_unused(description);
}

StreamTable::Descriptions::iterator StreamTable::drop_if_unused(
    Descriptions::iterator description) {
  const bool is_used =
      description->second.object != ObjectIndex::kNone || !description->second.streams.empty();
  return is_used ? std::next(description) : descriptions_.erase(description);
}

// Another process may have described another file with the same number since.
void StreamTable::close(ToldAccess& told) {
  const AccessEvent& event = told.event;
  const auto found = descriptions_.find(event.stream);
  if (found == descriptions_.end()) return;
  Description& description = found->second;
  end_streams(description, &told.ends, [&](const AccessStream& stream) {
    return stream.owner() == event.owner || stream.object() == event.object;
  });
  if (description.object == event.object) {
    told.ends.closed.push_back(description.object);
    description.object = ObjectIndex::kNone;
  }
  (void)drop_if_unused(found);
}

StreamEnds StreamTable::follow_deaths() {
  CAIRN_CHECK(ended_.empty());
  StreamEnds ends;
  for (auto at = descriptions_.begin(); at != descriptions_.end();) {
    const DescriptionIndex index = at->first;
    auto& description = at->second;
    const auto is_held = [&](ObjectIndex object) {
      return memory_.descriptions().is_held(index, object);
    };
    end_streams(description, &ends, [&](const AccessStream& stream) {
      return !memory_.owners().is_alive(stream.owner()) || !is_held(stream.object());
    });
    if (description.object != ObjectIndex::kNone && !is_held(description.object)) {
      ends.closed.push_back(description.object);
      description.object = ObjectIndex::kNone;
    }
    at = drop_if_unused(at);
  }
  return ends;
}

std::size_t StreamTable::open_count() const {
  return static_cast<std::size_t>(
      std::count_if(descriptions_.begin(), descriptions_.end(),
                    [](const auto& entry) { return entry.second.object != ObjectIndex::kNone; }));
}

}  // namespace cairn::node
