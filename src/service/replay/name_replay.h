// SPDX-License-Identifier: Apache-2.0
// Gives the names of a directory the files that the log says they mean, where the store may have
// lost that with the power. It makes a rename or a removal again, and leaves it to the restorer of
// files to make one that never came.
//
//   the name means what the log says        nothing
//   it means a file that the log knows      that file is gone: removed, replaced or moved. It stays
//                                           if it belongs where a file is that came later
//   it means another file                   that came later, and stays
//   it means nothing                        the file is moved here from another name of the
//                                           directory, or made again; if it is nowhere, and not in
//                                           the log, it went later
//
// Without a new start of the machine the store has lost no name: what is there came later, and a
// file that is nowhere was removed.
//
// It may be killed at any moment and run again.
//
// Thread safety: none. Ownership: owns the directory's descriptor; borrows the rest.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "service/durable_log/file_look.h"
#include "service/replay/log_index.h"

namespace cairn::durable {

class NameReplay {
 public:
  // Called before each step that changes anything.
  using Step = std::function<void(const char* step)>;

  NameReplay(const PendingDirectory& directory, std::span<PendingFile> files, Step step);
  ~NameReplay();
  NameReplay(const NameReplay&) = delete;
  NameReplay& operator=(const NameReplay&) = delete;

  // Looks, and changes nothing. Returns 0 or errno. A directory that is nowhere has no names.
  int plan();
  // How many names will mean something else.
  std::size_t count() const { return moves_.size() + removals_.size() + making_.size(); }
  // Tells the files where they are to be made again, and which of them have no name any more.
  void instruct();
  // Before the files are restored. Returns 0 or errno.
  int move_and_remove();
  // Afterwards: makes the names durable. Returns 0 or errno.
  int finish();
  // Whether a file that a name is to mean stays in the log.
  bool waits() const;

 private:
  struct Move {
    std::string from;
    std::string to;
    NamedFile file;
  };
  // A file that the log has, or that may be empty.
  struct Making {
    std::string name;
    NameChange wanted;
    PendingFile* file = nullptr;
    bool is_taken = false;  // by a file that goes
  };
  using Meanings = std::map<std::string, NameChange>;

  static NamedFile named(const PendingFile& file);
  bool wants(const PendingFile& file) const;
  bool had_last_name(const PendingFile& file) const;
  bool has_restarted() const;
  void find_displaced();
  bool may_go(const NamedFile& file) const;
  std::optional<NamedFile> look(const std::string& name, int* error) const;
  bool is_elsewhere(const NamedFile& file) const;
  bool is_certainly_gone(const NamedFile& file) const;
  std::string passing_name(const NamedFile& file) const;
  void place(const std::string& name, const NameChange& wanted);
  int move_all();
  int make_empty(const Making& making);

  const PendingDirectory& directory_;
  const std::span<PendingFile> files_;
  const Step step_;
  int fd_ = -1;
  std::string path_;
  Meanings meanings_;
  std::set<NamedFile> mentioned_;
  std::set<NamedFile> may_be_empty_;
  std::set<NamedFile> replaced_;            // by files that came later
  std::set<NamedFile> displaced_;           // their place has a file that came later
  std::map<std::string, NamedFile> there_;  // what names mean on the store
  std::vector<Move> moves_;
  std::vector<std::string> removals_;
  std::vector<Making> making_;
};

}  // namespace cairn::durable
