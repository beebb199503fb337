// SPDX-License-Identifier: Apache-2.0
#include "service/logged_files/logged_names.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include "base/testing/fewer_rights.h"
#include "memory/backing/posix_backing.h"
#include "memory/tiers/testing/test_memory.h"
#include "service/durable_log/log_scan.h"
#include "service/durable_log/testing/power_cut_storage.h"

namespace cairn::node {
namespace {

namespace fs = std::filesystem;
using Outcome = LogAttempt::Outcome;

// A directory of the build's file system, whose files are the node's as far as the test makes them.
class LoggedNamesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string made = (fs::current_path() / "names.XXXXXX").string();
    ASSERT_NE(::mkdtemp(made.data()), nullptr);
    path_ = made;
    fd_ = UniqueFd(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    memory_ = testing::make_memory(testing::memory_only(64 * kBlockBytes));
    actor_ = testing::make_actor(memory_);
    durable::LogOptions options;
    options.capacity_bytes = 8 << 20;
    options.segment_bytes = 1 << 20;
    auto log = durable::DurableLog::open(disk_.storage(), options);
    ASSERT_TRUE(log.is_ok()) << log.status().message();
    log_ = std::move(log.value());
    const Owner self = memory_.owners().current(ClientSlot::kOfService);
    files_.emplace(memory_, self, *log_);
    names_.emplace(memory_, *files_, *log_);
    files_->use_names(*names_);
    make("first");
    durable::FileLook look;
    ASSERT_EQ(durable::look_at(fd_.get(), "first", &look), 0);
    if (look.file.id.birth_ns == 0 || look.file.handle.empty()) GTEST_SKIP();
    ASSERT_EQ(names_->store(fd_.get()), 0);
  }
  void TearDown() override {
    actor_.drop_leases();
    fs::remove_all(path_);
  }

  // A file that no program of the node has open.
  void make(const std::string& name) const {
    const UniqueFd made(::openat(fd_.get(), name.c_str(), O_RDWR | O_CREAT | O_EXCL, 0640));
    ASSERT_TRUE(static_cast<bool>(made));
  }
  // One of the node's, of level node. In the log, with all its data, if `size` is not 0.
  ObjectIndex make_managed(const std::string& name, std::uint64_t size = 0) {
    const UniqueFd made(::openat(fd_.get(), name.c_str(), O_RDWR | O_CREAT | O_EXCL, 0640));
    StoreStatus status;
    EXPECT_EQ(store_status(made.get(), &status), 0);
    const ObjectIndex object = testing::make_object(actor_, status.key);
    Object& record = memory_.objects().at(object);
    record.durability.store(Durability::kNode);
    record.size.store(size);
    if (size != 0) {
      EXPECT_EQ(files_->log_changes(object, made.get(), LoggedFiles::Why::kAsked).outcome,
                Outcome::kLogged);
    }
    return object;
  }
  void rename(const char* from, const char* to) const {
    ASSERT_EQ(::renameat(fd_.get(), from, fd_.get(), to), 0);
  }
  void remove(const char* name) const { ASSERT_EQ(::unlinkat(fd_.get(), name, 0), 0); }

  // The service dies, and another one takes its log over.
  void inherit() {
    names_.emplace(memory_, *files_, *log_);
    files_->use_names(*names_);
    names_->inherit();
  }
  void expect_nothing_left() {
    EXPECT_TRUE(log_->directories().empty());
    EXPECT_EQ(memory_.service_board().named_directories.load(), 0U);
  }

  Outcome ask() { return names_->log(fd_.get()).outcome; }
  // What the log has not said to be stored: whether names mean a file, by the last record.
  std::map<std::string, bool> logged() {
    EXPECT_TRUE(log_->commit(log_->appended()).is_ok());
    auto storage = disk_.storage();
    auto superblock = durable::open_superblock(*storage, durable::SuperblockLock::kNone);
    auto scan = durable::LogScan::open(*storage, superblock->content);
    std::map<std::string, bool> found;
    (void)scan->run(durable::Payloads::kVerified,
                    [&](const durable::FoundRecord& record, const durable::LogSegment&) {
                      if (record.header.kind != durable::RecordKind::kNames) return;
                      const auto changes = durable::decode_names(record.payload);
                      for (const durable::NameChange& change : *changes)
                        found[change.name] = change.after.has_value();
                    });
    return found;
  }

  std::string path_;
  UniqueFd fd_;
  NodeMemory memory_;
  Actor actor_;
  durable::PowerCutDisk disk_;
  std::unique_ptr<durable::DurableLog> log_;
  std::optional<LoggedFiles> files_;
  std::optional<LoggedNames> names_;
};

TEST_F(LoggedNamesTest, WhatTheLogCanSayItAnswers) {
  make_managed("journal", 4096);
  EXPECT_EQ(ask(), Outcome::kLogged);
  EXPECT_EQ(logged(), (std::map<std::string, bool>{{"journal", true}}));
  EXPECT_EQ(memory_.service_board().named_directories.load(), 1U);
  remove("journal");
  EXPECT_EQ(ask(), Outcome::kLogged);
  EXPECT_EQ(logged(), (std::map<std::string, bool>{{"journal", false}}));
}

TEST_F(LoggedNamesTest, AnUnknownDirectoryIsTheStores) {
  fs::create_directory(path_ + "/folder");
  const UniqueFd folder(::open((path_ + "/folder").c_str(), O_RDONLY | O_DIRECTORY));
  EXPECT_EQ(names_->log(folder.get()).outcome, Outcome::kNeedsStore);
  EXPECT_EQ(names_->store(folder.get()), 0);
  EXPECT_EQ(names_->log(folder.get()).outcome, Outcome::kLogged);
}

TEST_F(LoggedNamesTest, WhatTheLogCannotSayIsTheStoresOnceAndTheLogsAfterwards) {
  const std::vector<std::pair<const char*, std::function<void()>>> deeds = {
      {"a file of nobody's", [this] { make("foreign"); }},
      {"a folder", [this] { fs::create_directory(path_ + "/folder"); }},
      {"a symbolic link", [this] { fs::create_symlink("first", path_ + "/link"); }},
      {"a second name", [this] { fs::create_hard_link(path_ + "/first", path_ + "/second"); }},
      {"another mode", [this] { fs::permissions(path_, fs::perms::owner_all); }},
      {"from elsewhere",
       [this] {
         make("passing");
         ASSERT_EQ(names_->store(fd_.get()), 0);
         rename("passing", "folder/passing");
       }},
      {"a file with data on the store",
       [this] {
         const ObjectIndex object = make_managed("stored");
         memory_.objects().at(object).store_size.store(5);
       }},
  };
  for (const auto& [what, deed] : deeds) {
    deed();
    EXPECT_EQ(ask(), Outcome::kNeedsStore) << what;
    EXPECT_EQ(ask(), Outcome::kNeedsStore) << what << ": nobody has asked the store";
    EXPECT_EQ(names_->store(fd_.get()), 0);
    EXPECT_EQ(ask(), Outcome::kLogged) << what;
  }
}

TEST_F(LoggedNamesTest, MoreNamesThanARecordHasRoomForAreTheStores) {
  for (int number = 0; number < 55; ++number)
    make_managed(std::string(220, 'n') + std::to_string(number));
  EXPECT_EQ(ask(), Outcome::kNeedsStore);
  EXPECT_EQ(names_->store(fd_.get()), 0);
  EXPECT_EQ(ask(), Outcome::kLogged);
}

// A power cut may bring a removed file back, by the store or by a name in the log: its data waits
// until the store has had both.
TEST_F(LoggedNamesTest, TheDataOfARemovedFileStaysInTheLog) {
  const ObjectIndex journal = make_managed("journal", 4096);
  const ObjectKey key = memory_.objects().at(journal).key();
  ASSERT_EQ(ask(), Outcome::kLogged);
  EXPECT_TRUE(log_->removed().empty());
  EXPECT_EQ(files_->log_removed(journal).outcome, Outcome::kLogged);
  remove("journal");
  const auto removed = log_->removed();
  ASSERT_EQ(removed.size(), 1U);
  EXPECT_EQ(removed[0].identity.key, key);
  EXPECT_EQ(names_->store_names_of(key), 0);
  EXPECT_TRUE(log_->directories().empty());
  ASSERT_TRUE(log_->retire(removed[0].object, removed[0].removed, {}).is_ok());
  EXPECT_TRUE(log_->removed().empty());
  EXPECT_EQ(log_->figures().objects, 0U);
}

// Its process has said that it removes it, and may not.
TEST_F(LoggedNamesTest, AFileThatIsThereAfterAllIsRemovedNoMore) {
  const ObjectIndex journal = make_managed("journal", 4096);
  const ObjectKey key = memory_.objects().at(journal).key();
  const durable::LogObject before = log_->hold(key);
  EXPECT_EQ(files_->log_removed(journal).outcome, Outcome::kLogged);
  EXPECT_EQ(log_->removed().size(), 1U);
  memory_.objects().at(journal).size.store(8192);
  const UniqueFd again(::openat(fd_.get(), "journal", O_RDWR));
  EXPECT_EQ(files_->log_changes(journal, again.get(), LoggedFiles::Why::kAsked).outcome,
            Outcome::kLogged);
  EXPECT_EQ(log_->hold(key), before);
  EXPECT_TRUE(log_->removed().empty());
}

// The word that all is stored is on its way to the device.
TEST_F(LoggedNamesTest, AFileOfWhichTheLogNeedsNothingMoreIsRenamed) {
  const ObjectIndex journal = make_managed("journal", 4096);
  const durable::LogObject number = log_->hold(memory_.objects().at(journal).key());
  ASSERT_TRUE(log_->retire(number, log_->appended(), {}).is_ok());
  files_->log_renamed(journal, path_ + "/other");
  EXPECT_EQ(files_->log_removed(journal).outcome, Outcome::kLogged);
}

// The file is then found there, though not everybody may ask for it by its handle.
TEST_F(LoggedNamesTest, TheStoreAnswersForADirectoryWhenTheLogHasTheRenamesDurably) {
  const ObjectIndex journal = make_managed("journal", 4096);
  fs::create_directory(path_ + "/folder");
  const UniqueFd folder(::open((path_ + "/folder").c_str(), O_RDONLY | O_DIRECTORY));
  rename("journal", "folder/journal");
  files_->log_renamed(journal, path_ + "/folder/journal");
  const durable::Lsn renamed = log_->appended();
  ASSERT_LT(log_->durable(), renamed);
  EXPECT_EQ(names_->store(folder.get()), 0);
  EXPECT_GE(log_->durable(), renamed);
}

// The store has to have the name durably before the log lets go of the bytes.
TEST_F(LoggedNamesTest, DataThatLeavesTheLogTakesItsNameToTheStore) {
  const ObjectIndex journal = make_managed("journal", 4096);
  ASSERT_EQ(ask(), Outcome::kLogged);
  ASSERT_EQ(log_->directories().size(), 1U);
  const LogMark mark = files_->begin_storing(journal);
  EXPECT_TRUE(log_->directories().empty());
  EXPECT_EQ(memory_.service_board().named_directories.load(), 0U);
  rename("journal", "other");
  make_managed("journal");
  EXPECT_EQ(ask(), Outcome::kLogged) << "the file is on the store, under its old name at least";
  EXPECT_EQ(files_->end_storing(journal, mark), 0);
  EXPECT_TRUE(log_->directories().empty());
}

// Recovery would make it where nobody has put it.
TEST_F(LoggedNamesTest, AFileWithoutANameThatTheKernelKnowsIsTheStores) {
  const UniqueFd gone(::openat(fd_.get(), "gone", O_RDWR | O_CREAT, 0640));
  remove("gone");
  const UniqueFd named(::openat(fd_.get(), "named (deleted)", O_RDWR | O_CREAT, 0640));
  for (const UniqueFd* each : {&gone, &named}) {
    StoreStatus status;
    ASSERT_EQ(store_status(each->get(), &status), 0);
    const ObjectIndex object = testing::make_object(actor_, status.key);
    memory_.objects().at(object).size.store(4096);
    EXPECT_EQ(files_->log_changes(object, each->get(), LoggedFiles::Why::kAsked).outcome,
              each == &gone ? Outcome::kNeedsStore : Outcome::kLogged);
  }
}

// The kernel tells of a failure once: the next syncfs says nothing of it.
TEST_F(LoggedNamesTest, AfterAFailureOfTheStoreDataStaysInTheLogUntilItsOwnFsync) {
  const ObjectIndex journal = make_managed("journal", 4096);
  const StoreId store = memory_.objects().at(journal).store();
  files_->doubt(static_cast<StoreId>(raw(store) + 1));
  const std::uint32_t failures = memory_.objects().at(journal).sync_failures.load();
  files_->doubt(store);
  files_->note_good_sync(journal, failures);  // it began before
  LogMark mark = files_->begin_storing(journal);
  EXPECT_EQ(files_->end_storing(journal, mark), -EIO);
  EXPECT_TRUE(memory_.objects().at(journal).is_in_log());
  files_->note_good_sync(journal, memory_.objects().at(journal).sync_failures.load());
  mark = files_->begin_storing(journal);
  EXPECT_EQ(files_->end_storing(journal, mark), 0);
  EXPECT_FALSE(memory_.objects().at(journal).is_in_log());
}

TEST_F(LoggedNamesTest, WhatTheStoreHasLostAndNoTierHasStaysInTheLog) {
  const ObjectIndex journal = make_managed("journal", 4096);
  files_->note_failed_sync(journal, LoggedFiles::OwnSync::kFailed, {});
  files_->note_good_sync(journal, memory_.objects().at(journal).sync_failures.load());
  LogMark mark = files_->begin_storing(journal);
  EXPECT_EQ(files_->end_storing(journal, mark), -EIO);
  EXPECT_TRUE(memory_.objects().at(journal).is_in_log());
  // In its successor's as well; and nobody wants it once the file has been cut to nothing.
  files_.emplace(memory_, memory_.owners().current(ClientSlot::kOfService), *log_);
  inherit();
  files_->inherit(journal);
  mark = files_->begin_storing(journal);
  EXPECT_EQ(files_->end_storing(journal, mark), -EIO);
  EXPECT_EQ(files_->log_cut(journal, 0).outcome, Outcome::kLogged);
  mark = files_->begin_storing(journal);
  EXPECT_EQ(files_->end_storing(journal, mark), 0);
}

// The store may not answer when it begins, and nobody is to wait for that.
TEST_F(LoggedNamesTest, ASuccessorLeavesToTheStoreWhatItsPredecessorHasLogged) {
  make_managed("journal", 4096);
  ASSERT_EQ(ask(), Outcome::kLogged);
  inherit();
  EXPECT_EQ(ask(), Outcome::kNeedsStore);
  EXPECT_EQ(log_->directories().size(), 1U);
  EXPECT_EQ(memory_.service_board().named_directories.load(), 1U);
  EXPECT_FALSE(names_->is_idle());
  EXPECT_EQ(names_->store_left(), 0);
  expect_nothing_left();
  EXPECT_TRUE(names_->is_idle());
}

TEST_F(LoggedNamesTest, DataThatLeavesTheLogTakesTheNamesToTheStoreThatADeadServiceHasLeft) {
  const ObjectIndex journal = make_managed("journal", 4096);
  ASSERT_EQ(ask(), Outcome::kLogged);
  inherit();
  files_->begin_storing(journal);
  expect_nothing_left();
}

// A user's service may not look, and the directory's store is durable as a whole then.
TEST_F(LoggedNamesTest, WhereADirectoryCannotBeFoundItsStoreIsMadeDurable) {
  make_managed("journal", 4096);
  ASSERT_EQ(ask(), Outcome::kLogged);
  const StoreId store = memory_.objects().at(ObjectIndex{1}).store();
  inherit();
  int syncs = 0, error = -ENODEV;
  names_->use_store_sync([&](StoreId which) {
    EXPECT_EQ(which, store);
    ++syncs;
    return error;
  });
  const testing::NobodyMayAskForHandles nobody;
  fs::rename(path_, path_ + "-moved");
  path_ += "-moved";
  EXPECT_EQ(names_->store_left(), 0) << "nothing of the store is in use";
  EXPECT_EQ(log_->directories().size(), 1U);
  error = 0;
  EXPECT_EQ(names_->store_left(), 0);
  EXPECT_EQ(syncs, 2);
  expect_nothing_left();
}

TEST_F(LoggedNamesTest, AnAnswerOfTheStoreEndsWhatADeadServiceHasLeftOfTheDirectory) {
  make_managed("journal", 4096);
  ASSERT_EQ(ask(), Outcome::kLogged);
  inherit();
  EXPECT_EQ(names_->store(fd_.get()), 0);
  expect_nothing_left();
  EXPECT_EQ(log_->durable(), log_->appended());
  make_managed("next", 4096);
  EXPECT_EQ(ask(), Outcome::kLogged);
}

TEST_F(LoggedNamesTest, OfADirectoryThatIsGoneNothingIsLeft) {
  fs::create_directory(path_ + "/folder");
  {
    const UniqueFd folder(::open((path_ + "/folder").c_str(), O_RDONLY | O_DIRECTORY));
    ASSERT_EQ(names_->store(folder.get()), 0);
    make_managed("folder/journal", 4096);
    ASSERT_EQ(names_->log(folder.get()).outcome, Outcome::kLogged);
  }
  inherit();
  fs::remove_all(path_ + "/folder");
  EXPECT_EQ(names_->store_left(), 0);
  EXPECT_TRUE(names_->is_idle());
  if (::geteuid() == 0) expect_nothing_left();
}

TEST_F(LoggedNamesTest, NamesThatRestLeaveTheLog) {
  make_managed("journal", 4096);
  ASSERT_EQ(ask(), Outcome::kLogged);
  EXPECT_EQ(names_->retire_rested(3'600'000'000'000), 0);
  EXPECT_EQ(log_->directories().size(), 1U);
  EXPECT_EQ(names_->retire_rested(0), 0);
  EXPECT_TRUE(log_->directories().empty());
  EXPECT_EQ(ask(), Outcome::kLogged) << "nothing has changed since";
}

}  // namespace
}  // namespace cairn::node
