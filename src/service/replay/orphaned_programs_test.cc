// SPDX-License-Identifier: Apache-2.0
// Programs have outlived the node, and left word of what they have stored by themselves
// (memory/flush/orphan_words.h).
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <thread>

#include "memory/flush/orphan_words.h"
#include "service/durable_log/directory_storage.h"
#include "service/durable_log/left_programs.h"
#include "service/durable_log/program_note.h"
#include "service/replay/left_words.h"
#include "service/replay/testing/lost_names.h"

namespace cairn::durable {
namespace {

namespace fs = std::filesystem;

class OrphanedPrograms : public RecoverNames {
 protected:
  Lsn put_older(const std::string& name) {
    put(name, "0123456789");
    const auto file = log_->add_object(identity(store(name)), state_of(name));
    // The service was storing it: any time is explained then.
    EXPECT_TRUE(log_->begin_storing(*file).is_ok());
    const std::string older = "older bytes";
    return *log_->append_data(*file, {0, std::as_bytes(std::span(older))},
                              {older.size(), kModified});
  }
  OrphanWord word(const std::string& name, Lsn upto) const {
    const ObjectKey key = identity(store(name)).key;
    OrphanWord word;
    word.log = log_->id();
    word.upto = raw(upto);
    word.store = raw(key.store);
    word.inode = key.id.inode;
    word.birth_ns = static_cast<std::uint64_t>(key.id.birth_ns);
    return word;
  }
  // A node's memory that the log's folder has a note of.
  int noted_memory() const {
    const int memory = ::memfd_create("cairn-control", MFD_CLOEXEC);
    EXPECT_EQ(::ftruncate(memory, 4096), 0);
    EXPECT_TRUE(note_programs(folder(), memory).is_ok());
    return memory;
  }
  static void put_file(const std::string& path) { std::ofstream(path) << "here"; }
  std::string folder() const { return log_folder_of(tier()); }
  void say(const OrphanWord& word) const { ASSERT_EQ(say_in(folder().c_str(), word), 0); }
  std::size_t words() const { return left_words(folder()).value().size(); }
};

TEST_F(OrphanedPrograms, FilesThatTheyHaveStoredAreLeftAlone) {
  for (const char* name : {"theirs", "ours", "removed", "later"}) put_older(name);
  const Lsn upto = log_->appended();
  const auto again = log_->add_object(identity(store("later")), state_of("later"));
  const std::string newer = "NEWER";
  ASSERT_TRUE(
      log_->append_data(*again, {0, std::as_bytes(std::span(newer))}, {11, kModified}).is_ok());
  for (const char* name : {"theirs", "removed", "later"}) say(word(name, upto));
  OrphanWord other = word("ours", upto);
  other.log ^= 1;  // of another log
  say(other);
  die_alone();
  put("theirs", "newer bytes");
  fs::remove(store("removed"));
  run({.dry_run = true});
  EXPECT_EQ(words(), 4u);
  run();
  const std::map<std::string, std::string> expected = {
      {"theirs", "newer bytes"}, {"ours", "older bytes"}, {"later", "NEWER56789"}};
  EXPECT_EQ(tree()["theirs"], expected.at("theirs"));
  EXPECT_EQ(tree()["ours"], expected.at("ours"));
  EXPECT_EQ(tree()["later"].substr(0, 5), "NEWER") << "a later node has logged that";
  EXPECT_FALSE(fs::exists(store("removed"))) << "it may have been a journal";
  EXPECT_EQ(words(), 0u);
  EXPECT_TRUE(run().files.empty());
}

TEST_F(OrphanedPrograms, ATornWordCountsForNothingAndTheNextOneDoes) {
  const Lsn upto = put_older("ours");
  put_older("theirs");
  say(word("ours", upto));
  fs::resize_file(folder() + "/" + OrphanWord::kFileName, 50);
  say(word("theirs", log_->appended()));
  die_alone();
  put("theirs", "newer bytes");
  run();
  EXPECT_EQ(tree()["ours"], "older bytes");
  EXPECT_EQ(tree()["theirs"], "newer bytes");
}

TEST_F(OrphanedPrograms, ARecoveryThatIsKilledAnywhereHeedsThemStill) {
  bool is_killed = true;
  for (int count = 0; is_killed; count += kKillStride) {
    begin();
    put_older("ours");
    put_older("later");
    const Lsn upto = put_older("theirs");
    say(word("theirs", upto));
    say(word("later", upto));
    put_older("later");
    die_alone();
    put("theirs", "newer bytes");
    is_killed = is_killed_at(tier(), count);
    run();
    const std::map<std::string, std::string> expected = {
        {"later", "older bytes"}, {"ours", "older bytes"}, {"theirs", "newer bytes"}};
    ASSERT_EQ(tree(), expected) << "killed at " << count;
  }
}

// A process that has the memory of the node mapped, and has not ended.
class LivingProgram {
 public:
  explicit LivingProgram(int memory) : pid_(::fork()) {
    if (pid_ != 0) return;
    void* const mapped = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, memory, 0);
    if (mapped == MAP_FAILED) ::_exit(1);
    ::close_range(3, ~0U, 0);  // among them those of the log
    for (;;) ::pause();
  }
  ~LivingProgram() { end(); }
  LivingProgram(const LivingProgram&) = delete;
  LivingProgram& operator=(const LivingProgram&) = delete;
  pid_t pid() const { return pid_; }
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_;
};

// It may store newer bytes at any time, past the log.
TEST_F(OrphanedPrograms, RecoveryIsRefusedWhileOneLives) {
  put_older("theirs");
  const int memory = noted_memory();
  LivingProgram program(memory);
  die_alone();
  for (int looks = 0; looks < 1000 && left_programs(folder()).value().empty(); ++looks)
    ::usleep(10'000);
  const auto files = [this] {
    return std::distance(fs::directory_iterator(folder()), fs::directory_iterator());
  };
  const auto before = files();
  const auto report = recover(tier(), {});
  ASSERT_FALSE(report.is_ok());
  EXPECT_EQ(report.status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(files(), before) << "a refusal costs the tier nothing";
  EXPECT_NE(report.status().message().find(" " + std::to_string(program.pid()) + " ("),
            std::string::npos)
      << report.status().message();
  EXPECT_EQ(tree()["theirs"], "0123456789");
  EXPECT_TRUE(recover(tier(), {.dry_run = true}).is_ok()) << "it changes nothing";
  program.end();
  run();
  EXPECT_EQ(tree()["theirs"], "older bytes");
  EXPECT_FALSE(is_of_this_start(folder())) << "nobody concerns the log any more";
  ::close(memory);
}

TEST_F(OrphanedPrograms, OneThatIsKilledMeanwhileIsWaitedFor) {
  put_older("theirs");
  const int memory = noted_memory();
  LivingProgram program(memory);
  die_alone();
  std::thread killer([&program] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    program.end();
  });
  run();
  killer.join();
  EXPECT_EQ(tree()["theirs"], "older bytes");
  ::close(memory);
}

// What the log has of an earlier start of the machine may be lost by its crash.
TEST_F(OrphanedPrograms, ANodeOfThisStartSaysWhatAnEarlierOneHasLeft) {
  const int memory = ::memfd_create("cairn-control", MFD_CLOEXEC);
  keep_programs(folder());
  EXPECT_FALSE(is_of_this_start(folder())) << "nobody knows";
  for (int node = 0; node < 2; ++node) {
    ASSERT_TRUE(note_programs(folder(), memory).is_ok());
    EXPECT_FALSE(is_of_this_start(folder()));
  }
  forget_programs(folder());
  ASSERT_TRUE(note_programs(folder(), memory).is_ok());
  EXPECT_TRUE(is_of_this_start(folder()));
  ::close(memory);
}

// A journal that a command has removed, which had no node any more, must not come back.
TEST_F(OrphanedPrograms, AFileThatIsGoneWithoutACrashIsSavedElsewhere) {
  put_older("removed");
  ::close(noted_memory());
  die_alone();
  fs::remove(store("removed"));
  const std::string nowhere = tier() + "/nowhere";
  put_file(nowhere);
  const RecoveryReport kept = run({.rescue_folder = nowhere});
  ASSERT_EQ(kept.files.size(), 1u);
  EXPECT_EQ(kept.files[0].outcome, Outcome::kKept) << "there is no rescue folder";
  EXPECT_TRUE(is_of_this_start(folder())) << "the next recovery knows it as well";
  const RecoveryReport report = run();
  ASSERT_EQ(report.files.size(), 1u);
  EXPECT_EQ(report.files[0].outcome, Outcome::kRescued);
  EXPECT_FALSE(fs::exists(store("removed")));
}

TEST_F(OrphanedPrograms, NoMoreIsReadOfANoteThanANoteHas) {
  begin();
  ::close(noted_memory());
  EXPECT_TRUE(is_of_this_start(folder()));
  const std::string path = folder() + "/programs";
  std::string line;
  std::getline(std::ifstream(path) >> std::ws, line);
  std::ofstream(path) << std::string(kProgramNoteBytesMax, ' ') << line;
  EXPECT_FALSE(is_of_this_start(folder()));
}

// What somebody else has put there in its place.
TEST_F(OrphanedPrograms, AnythingButAFileIsNamed) {
  put_older("ours");
  die_alone();
  const std::string path = folder() + "/" + OrphanWord::kFileName;
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_LT(say_in(folder().c_str(), OrphanWord()), 0);
  const auto report = recover(tier(), {});
  ASSERT_FALSE(report.is_ok());
  EXPECT_NE(report.status().message().find("remove it"), std::string::npos);
  fs::remove(path);
  run();
  EXPECT_EQ(tree()["ours"], "older bytes");
}

}  // namespace
}  // namespace cairn::durable
