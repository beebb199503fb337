// SPDX-License-Identifier: Apache-2.0
// What has become of the names of a directory, from what is known of them and the events since.
//
// A story has an end only where each of its steps is certain: which file a name meant before and
// means afterwards. A file that has come and gone between two looks, one from another directory, a
// name that nobody has looked at before: such a story has no end, and the store has to make the
// directory durable.
//
// Thread safety: none. Ownership: values.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "service/durable_log/name_change.h"
#include "service/logged_files/directory_watch.h"

namespace cairn::node {

// What names mean, as far as somebody has looked: a file, or nothing.
struct KnownNames {
  std::map<std::string, std::optional<durable::NamedFile>> names;
  bool has_all = false;  // what is not among them means nothing
};

class NameStory {
 public:
  explicit NameStory(const KnownNames& known) : known_(known) {}

  // False when the story has no end from here on.
  bool hear(const NameEvent& event);
  // The names that the events have touched.
  std::vector<std::string> touched() const;

  // What a look at the name finds: nothing when it does not know, for then nobody does.
  using Look = std::function<std::optional<std::optional<durable::NamedFile>>(const std::string&)>;
  // Looks at every touched name. The changes have no modes yet. None: the story has no end.
  std::optional<std::vector<durable::NameChange>> end(const Look& look);

 private:
  // A file that some name means or has meant.
  struct Thing {
    std::optional<durable::NamedFile> file;  // none: made since the last look
    bool is_named = false;
  };
  static constexpr int kNothing = -1;
  static constexpr int kUnknown = -2;
  struct Name {
    int before = kUnknown;
    int now = kUnknown;
  };

  Name& at(const std::string& name);
  // The thing goes out of the directory, or under another file.
  bool lose(int thing);
  bool move_here(std::uint32_t move, Name& name);
  bool settle(int thing, const std::optional<durable::NamedFile>& found);

  const KnownNames& known_;
  std::vector<Thing> things_;
  std::map<std::string, Name> names_;
  std::map<std::uint32_t, int> moving_;
  bool is_lost_ = false;
};

}  // namespace cairn::node
