// SPDX-License-Identifier: Apache-2.0
// A write that goes past the tiers, and a block that comes and goes while it does: what the block
// was filled with must not stay in the store in place of what was written.
#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "memory/buffer/block_access.h"
#include "memory/buffer/object_io.h"
#include "memory/buffer/object_lifecycle.h"
#include "memory/buffer/testing/accepting_service.h"
#include "memory/tiers/testing/test_memory.h"

namespace cairn {
namespace {

constexpr std::size_t kLength = 5000;

// From here on each pwrite() of this thread waits for the owner of the descriptor that this
// returns (seccomp_unotify(2)). -1 where the kernel does not allow it.
int intercept_writes() {
  std::array<sock_filter, 4> program{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pwrite64, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog filter{program.size(), program.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  return static_cast<int>(
      syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &filter));
}

// Waits for one write, makes it, and calls `before` and `after` around it. False when there is none
// any more.
bool serve_write(int listener, const std::function<void()>& before,
                 const std::function<void()>& after) {
  pollfd entry{listener, POLLIN, 0};
  if (poll(&entry, 1, 10'000) != 1 || (entry.revents & POLLIN) == 0) return false;
  seccomp_notif request{};
  if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request) != 0) return false;
  before();
  const auto& args = request.data.args;
  const ssize_t put = pwrite(static_cast<int>(args[0]), reinterpret_cast<const void*>(args[1]),
                             args[2], static_cast<off_t>(args[3]));
  after();
  seccomp_notif_resp answer{};
  answer.id = request.id;
  answer.val = put;
  return ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer) == 0;
}

class RefusingService final : public testing::AcceptingService {
 public:
  bool hand_over(ObjectIndex, int) override { return false; }
};

TEST(WriteAround, IsNotUndoneByABlockThatComesAndGoesMeanwhile) {
  NodeMemory memory = testing::make_memory(testing::memory_only(16 * testing::kMiB), "around");
  std::array<Actor, 2> actors{testing::make_actor(memory), testing::make_actor(memory)};
  const int fd = testing::make_unnamed_file();
  const std::string old(kLength, 'o');
  ASSERT_EQ(pwrite(fd, old.data(), old.size(), 0), static_cast<ssize_t>(old.size()));
  BackingFile file(fd, O_RDWR);
  StoreStatus status;
  ASSERT_EQ(store_status(fd, &status), 0);
  const ObjectIndex index = open_object(actors[0], file, status, true);
  memory.objects().at(index).clear(kObjectUnlinked);

  RefusingService refusing;
  testing::AcceptingService accepting;
  refusing.memory = accepting.memory = &memory;
  const ObjectAccess around{actors[0], index, file, refusing};
  const ObjectAccess buffered{actors[1], index, file, accepting};

  std::atomic<int> listener{-2};
  ssize_t written = 0;
  std::thread writer([&] {
    listener.store(intercept_writes());
    listener.notify_all();
    if (listener.load() >= 0) written = write_object(around, 0, "new", 3);
  });
  listener.wait(-2);
  if (listener.load() < 0) {
    writer.join();
    GTEST_SKIP() << "seccomp: errno " << errno;
  }
  const auto come = [&] { ASSERT_EQ(write_object(buffered, 100, "other", 5), 5); };
  const auto go = [&] {
    ASSERT_EQ(sync_object(buffered, false, nullptr), 0);
    ASSERT_EQ(drop_blocks(buffered, 0, UINT64_MAX, false, PlacementReason::kAsked), 0);
  };
  EXPECT_TRUE(serve_write(listener.load(), come, go));
  const auto nothing = [] {};
  EXPECT_TRUE(serve_write(listener.load(), nothing, nothing)) << "the write is made once more";
  writer.join();

  EXPECT_EQ(written, 3);
  std::string stored(kLength, 0);
  ASSERT_EQ(pread(fd, stored.data(), stored.size(), 0), static_cast<ssize_t>(stored.size()));
  std::string expected = old;
  expected.replace(0, 3, "new").replace(100, 5, "other");
  EXPECT_TRUE(stored == expected) << stored.substr(0, 120);
  for (Actor& actor : actors) actor.drop_leases();
  close(listener.load());
  close(fd);
}

}  // namespace
}  // namespace cairn
