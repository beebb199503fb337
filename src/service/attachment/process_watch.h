// SPDX-License-Identifier: Apache-2.0
// The processes whose end the service has to notice: those that are attached, and those that are
// not served and use files of the node. A process may replace its image (exec): the old image's
// holds wait until the new one takes them over or the process ends.
//
// Thread safety: the attach server's thread. Ownership: owns the processes' descriptors; borrows
// the rest.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "service/attachment/attach_events.h"
#include "service/attachment/client_table.h"
#include "service/keeping/kept_descriptors.h"
#include "service/process/unique_fd.h"
#include "service/write_back/descriptor_budget.h"
#include "service/write_back/unserved_files.h"

namespace cairn::node {

class ProcessWatch {
 public:
  // How often processes that cannot be watched are looked at.
  static constexpr int kLookMs = 100;

  // Has the server call ended(pid) once `pidfd` is readable; false when it cannot.
  using WatchEnd = std::function<bool(int pidfd, pid_t pid)>;

  ProcessWatch(ClientTable& clients, UnservedFiles& unserved, AttachEvents& events,
               KeptDescriptors& labels, WatchEnd watch_end)
      : clients_(clients),
        unserved_(unserved),
        events_(events),
        labels_(labels),
        watch_end_(std::move(watch_end)) {}

  // By a successor, before anything else: it has this descriptor of the process.
  void adopt(pid_t pid, UniqueFd pidfd) { (void)watch(pid, std::move(pidfd)); }
  // The same, afterwards: an image that is attached, and one that has departed.
  void adopt_attached(pid_t pid, Owner owner);
  void adopt_departed(const ClientTable::Departed& departed);

  bool knows(pid_t pid) const { return processes_.contains(pid); }
  // An attached process greets again, which only an exec makes it do: its old image is gone.
  void image_replaced(pid_t pid);
  // The present image of the process is `owner`. False when the process cannot be watched.
  bool attach(pid_t pid, Owner owner);
  // The same of one that has taken its slot by itself and may have ended since: it cannot be
  // refused, so what cannot be watched is looked at. `socket` is its connection.
  void attach_claimed(pid_t pid, Owner owner, int socket);
  // The image does not want to be served. False when it is not `owner`.
  bool decline(pid_t pid, Owner owner);
  // The new image has taken over what it wants; it is served itself or has a ledger.
  void inherited(pid_t pid, bool has_ledger);
  // The connection of an attached process has closed: an exec, or a death that is a moment away.
  void disconnected(pid_t pid, Owner owner);

  // Has the end of a process noticed that is not attached, also without room for a descriptor of
  // it. False when it is dead already.
  bool notice_end_of(pid_t pid, std::optional<FileRoom> room);
  void ended(pid_t pid);

  // Processes that the service has no descriptor of, so it looks at them now and then.
  bool has_orphans() const { return !orphans_.empty(); }
  bool has_unwatched() const { return !unwatched_.empty(); }
  void check_orphans();
  void check_unwatched();

 private:
  struct Process {
    FileRoom room;  // none of one that is attached, which has room of its own
    KeptFd pidfd;
    std::vector<Owner> departed;  // images before an exec, whose holds wait
    Owner owner;                  // none when the present image is not attached
    bool is_gone = false;         // it has ended, and another may have its number
  };
  // A process whose connection closed while it lives.
  struct Orphan {
    pid_t pid;
    Owner owner;
    std::int64_t check_at_ns;
  };

  // Makes sure that the death of `pid` is noticed. Null when it is dead already, or there is no
  // number to watch it with.
  Process* watch(pid_t pid);
  // Requires: it is not known yet.
  Process* watch(pid_t pid, UniqueFd pidfd);
  static bool is_over(pid_t pid, const Process& process);
  // The present image is gone, and its holds wait. Requires: it is attached.
  void depart(Process& process);

  ClientTable& clients_;
  UnservedFiles& unserved_;
  AttachEvents& events_;
  KeptDescriptors& labels_;
  const WatchEnd watch_end_;
  std::map<pid_t, Process> processes_;
  std::vector<Orphan> orphans_;
  // Processes whose end is looked for now and then, for want of numbers to watch them with.
  std::set<pid_t> unwatched_;
  std::int64_t unwatched_at_ns_ = 0;
};

}  // namespace cairn::node
