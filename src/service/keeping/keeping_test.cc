// SPDX-License-Identifier: Apache-2.0
// What a successor finds: pieces of memory, descriptors and their labels, after services that were
// killed.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/testing/temporary_folder.h"
#include "base/testing/without_threads.h"
#include "service/keeping/inheritance.h"
#include "service/keeping/keeper.h"
#include "service/keeping/kept_text.h"

namespace cairn::node {
namespace {

constexpr KeeperLimits kPatient{100, 60'000'000'000};

// The exit status of a keeper of its own process, whose services do what `serve` says.
int keep(const KeeperLimits& limits, const std::function<int(Succession&)>& serve) {
  const pid_t keeper = ::fork();
  if (keeper == 0) ::_exit(keep_service(limits, {serve, {}}));
  int status = 0;
  ::waitpid(keeper, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Keeper, EndsAsTheServiceEnds) {
  EXPECT_EQ(keep(kPatient, [](Succession&) { return 7; }), 7);
}

TEST(Keeper, StartsAnotherServiceWhichFindsWhatTheDeadOneLeft) {
  EXPECT_EQ(keep(kPatient,
                 [](Succession& succession) {
                   const auto count = succession.memory.take<int>(1);
                   if (!succession.is_successor()) {
                     if (count[0] != 0) return 1;
                   } else if (succession.life->last_signal.load() != SIGKILL) {
                     return 2;
                   }
                   if (++count[0] < 5) ::raise(SIGKILL);
                   return count[0];
                 }),
            5);
}

TEST(Keeper, StartsNoServiceAfterOneThatHadNothingLeftToDo) {
  EXPECT_EQ(keep(kPatient,
                 [](Succession& succession) {
                   if (succession.is_successor()) return 1;
                   succession.life->done.store(1 + 6);
                   ::raise(SIGKILL);
                   return 2;
                 }),
            6);
}

TEST(Keeper, HasEveryDescriptorOfItsService) {
  EXPECT_EQ(keep(kPatient,
                 [](Succession& succession) {
                   const auto number = succession.memory.take<int>(1);
                   if (!succession.is_successor()) {
                     int ends[2];
                     if (::pipe2(ends, O_CLOEXEC) != 0 || ::write(ends[1], "left", 4) != 4)
                       return 1;
                     number[0] = ends[0];
                     ::raise(SIGKILL);
                   }
                   char text[8] = {};
                   return ::read(number[0], text, sizeof text) == 4 && text[0] == 'l' ? 3 : 2;
                 }),
            3);
}

TEST(Keeper, GivesUpAfterDeathsThatFollowEachOther) {
  EXPECT_EQ(keep(KeeperLimits{3, 60'000'000'000},
                 [](Succession& succession) {
                   if (succession.life->restarts.load() > 2) ::_exit(1);
                   ::raise(SIGKILL);
                   return 0;
                 }),
            128 + SIGKILL);
}

// A rescue that is killed is followed by another one, which knows of it.
TEST(Keeper, RescuesWhatIsLeftAfterTooManyDeaths) {
  const pid_t keeper = ::fork();
  if (keeper == 0) {
    const auto serve = [](Succession&) {
      ::raise(SIGKILL);
      return 0;
    };
    const auto rescue = [](Succession& succession) {
      KeptLife& life = *succession.life;
      if (life.restarts.load() != 3) return 1;
      if (life.rescues.load() == 1) {
        life.rescue_step.store(RescueStep::kStore);
        ::raise(SIGKILL);
      }
      return life.rescue_step.load() == RescueStep::kStore ? 74 : 2;
    };
    ::_exit(keep_service(KeeperLimits(), {serve, rescue}));
  }
  int status = 0;
  ASSERT_EQ(::waitpid(keeper, &status, 0), keeper);
  EXPECT_EQ(WEXITSTATUS(status), 74);
}

// What one throws is a death, and so is an exit in the midst of its work: what it had is left to
// the next one.
TEST(Keeper, TakesAServiceThatThrowsOrExitsForADeadOne) {
  EXPECT_EQ(keep(kPatient,
                 [](Succession& succession) {
                   const std::uint32_t deaths = succession.life->restarts.load();
                   const auto number = succession.memory.take<int>(1);
                   if (deaths == 0) {
                     const UniqueFd kept(::eventfd(0, EFD_CLOEXEC));
                     number[0] = kept.get();
                     throw std::runtime_error("no thread");
                   }
                   if (succession.life->last_signal.load() != SIGABRT) return 1;
                   if (deaths == 1) ::_exit(0);
                   return ::fcntl(number[0], F_GETFD) >= 0 ? 7 : 2;
                 }),
            7);
}

TEST(Keeper, TakesARescueThatThrowsOrExitsForADeadOne) {
  const auto serve = [](Succession&) {
    ::raise(SIGKILL);
    return 0;
  };
  const auto rescue = [](Succession& succession) {
    if (succession.life->rescues.load() == 1) throw std::runtime_error("no memory");
    if (succession.life->rescues.load() == 2) ::_exit(0);
    return 74;
  };
  const pid_t keeper = ::fork();
  if (keeper == 0) ::_exit(keep_service(KeeperLimits(), {serve, rescue}));
  int status = 0;
  ASSERT_EQ(::waitpid(keeper, &status, 0), keeper);
  EXPECT_EQ(WEXITSTATUS(status), 74);
}

// With or without deaths before: nobody but the keeper has what is dirty.
TEST(Keeper, IsTheRescueWhereItHasNoChild) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root becomes another account";
  for (const unsigned deaths_max : {1u, 3u}) {
    const KeeperLimits limits{deaths_max, 60'000'000'000, 2, 2};
    const int status = cairn::testing::run_without_threads([&limits] {
      const pid_t keeper = ::getpid();
      const auto serve = [](Succession&) { return 1; };
      const auto rescue = [keeper](Succession& succession) {
        ::raise(SIGALRM);  // the store hangs
        return ::getpid() == keeper && succession.life->rescues.load() == 1 ? 74 : 2;
      };
      auto dead = Succession::begin();
      return keep_successor(limits, std::move(dead.value()), {serve, rescue});
    });
    EXPECT_EQ(status, 74);
  }
}

// The memory is found again by its descriptor, as after exec(2).
TEST(Keeper, OfANewImageKnowsTheDeathsBeforeIt) {
  const pid_t keeper = ::fork();
  if (keeper == 0) {
    auto first = Succession::begin();
    first->life->restarts.store(4);
    auto found = Succession::of_dead(::dup(first->memory.fd()));
    const auto serve = [](Succession& succession) {
      return static_cast<int>(succession.life->restarts.load());
    };
    ::_exit(keep_successor(kPatient, std::move(found.value()), {serve, {}}));
  }
  int status = 0;
  ASSERT_EQ(::waitpid(keeper, &status, 0), keeper);
  EXPECT_EQ(WEXITSTATUS(status), 5);
}

TEST(Keeper, PassesTheUsersWishOn) {
  const pid_t keeper = ::fork();
  if (keeper == 0) {
    ::_exit(keep_service(kPatient, {[](Succession&) {
                                      sigset_t wish;
                                      ::sigemptyset(&wish);
                                      ::sigaddset(&wish, SIGTERM);
                                      int number = 0;
                                      ::sigwait(&wish, &number);
                                      return number == SIGTERM ? 9 : 1;
                                    },
                                    {}}));
  }
  ::usleep(50'000);
  ::kill(keeper, SIGTERM);
  int status = 0;
  ASSERT_EQ(::waitpid(keeper, &status, 0), keeper);
  EXPECT_EQ(WEXITSTATUS(status), 9);
}

TEST(KeptText, IsTheLastOneThatWasWhole) {
  auto memory = KeptMemory::create();
  ASSERT_TRUE(memory);
  KeptText text(*memory);
  EXPECT_EQ(text.get(), "");
  EXPECT_TRUE(text.put("one"));
  EXPECT_TRUE(text.put("another"));
  EXPECT_EQ(text.get(), "another");
  EXPECT_FALSE(text.put(std::string(KeptText::kBytesMax + 1, 'x')));
  EXPECT_EQ(text.get(), "another");
}

TEST(KeptMemoryDeathTest, OtherPiecesAreFoundOut) {
  EXPECT_EQ(keep(KeeperLimits{2, 60'000'000'000},
                 [](Succession& succession) {
                   if (!succession.is_successor()) {
                     (void)succession.memory.take<int>(4);
                     ::raise(SIGKILL);
                   }
                   (void)succession.memory.take<int>(5);
                   return 0;
                 }),
            128 + SIGABRT);
}

class InheritanceTest : public ::testing::Test {
 protected:
  KeptMemory memory_ = std::move(KeptMemory::create().value());
  KeptDescriptors labels_{memory_};
};

// In a child, because it closes what it does not know.
TEST_F(InheritanceTest, SortsWhatIsOpen) {
  const pid_t child = ::fork();
  if (child == 0) {
    const auto labelled = static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0));
    labels_.note(labelled, {KeptKind::kProcess, 77});
    const int useless = ::eventfd(0, 0);
    std::string path = ::testing::TempDir() + "cairn-inheritance-XXXXXX";
    const int written = ::mkstemp(path.data());
    const int read = ::open(path.c_str(), O_RDONLY);
    ::unlink(path.c_str());
    Inheritance left(labels_);
    // The test's own surroundings may have left some open, too.
    const auto has = [](const std::vector<UniqueFd>& all, int fd) {
      return std::any_of(all.begin(), all.end(),
                         [fd](const UniqueFd& each) { return each.get() == fd; });
    };
    const bool is_sorted =
        has(left.take_writable_files(), written) && has(left.take_readable_files(), read);
    auto processes = left.take_all(KeptKind::kProcess);
    const bool is_found = processes.size() == 1 && processes[0].fd.get() == labelled &&
                          processes[0].label.number == 77;
    const bool is_closed = ::fcntl(useless, F_GETFD) < 0;
    ::_exit(is_sorted && is_found && is_closed ? 0 : 1 + (is_sorted ? 2 : 0) + (is_found ? 4 : 0));
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(InheritanceTest, AConnectionAtTheLongestPathIsOne) {
  const cairn::testing::TemporaryFolder folder("inheritance");
  const pid_t child = ::fork();
  if (child == 0) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::string path = folder.path() + "/";
    path.resize(sizeof address.sun_path - 1, 's');
    path.copy(address.sun_path, path.size());
    const auto* place = reinterpret_cast<const sockaddr*>(&address);
    const int listener = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
    const int client = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
    const bool is_there = ::bind(listener, place, sizeof address) == 0 &&
                          ::listen(listener, 1) == 0 &&
                          ::connect(client, place, sizeof address) == 0;
    const int accepted = ::accept(listener, nullptr, nullptr);
    Inheritance left(labels_);
    const std::vector<UniqueFd> connections = left.take_connections(path);
    ::_exit(is_there && connections.size() == 1 && connections[0].get() == accepted ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// A file that was handed over is what nobody else could store.
TEST_F(InheritanceTest, ALabelThatCannotBeTheFilesIsNone) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::string path = ::testing::TempDir() + "cairn-inheritance-XXXXXX";
    const int file = ::mkstemp(path.data());
    ::unlink(path.c_str());
    labels_.note(file, {KeptKind::kProcess, 77});
    Inheritance left(labels_);
    bool is_file = false;
    for (const UniqueFd& each : left.take_writable_files()) is_file = is_file || each.get() == file;
    const bool has_label = labels_.of(file).kind != KeptKind::kNone;
    ::_exit(is_file && !has_label && left.take_all(KeptKind::kProcess).empty() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(InheritanceTest, ALabelGoesBeforeItsDescriptor) {
  int number = -1;
  {
    const KeptFd fd(UniqueFd(::eventfd(0, 0)), labels_, {KeptKind::kControl, 5});
    number = fd.get();
    EXPECT_EQ(labels_.of(number).number, 5u);
  }
  EXPECT_EQ(labels_.of(number).kind, KeptKind::kNone);
}

}  // namespace
}  // namespace cairn::node
