// SPDX-License-Identifier: Apache-2.0
//
// Programs whose threads use a number that becomes another file's meanwhile, or end a call halfway:
//   cairn_closing_worker closed|switched|third|jumps|forks|reading SECONDS DIRECTORY
// DIRECTORY has the files A, B and Z of kFileBytes, each full of its letter.
//   closed    the number is closed and opened again: a call gets one of the files, or an error.
//             Afterwards all have their letters.
//   switched  dup2() puts A and B at the number in turn: each call gets one of them, and Z, which
//             others open and close, keeps its letters
//   third     dup2() puts A and a pipe at the number in turn, while Z is opened: no call on the
//             number gives Z a time or a lock
//   jumps     a signal handler jumps out of reads and of dup2(): the lock of the file ends with its
//             close
//   forks     children are made while threads duplicate a number: one that closes all it has, has
//             the file open no longer
//   reading   a child is made while a closed file is being read: the lock ends with the read
// Exit status 0: everything did what it natively does.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kFileBytes = 24 << 20;
constexpr std::size_t kPieceBytes = 64 << 10;
constexpr std::size_t kPieces = kFileBytes / kPieceBytes;

std::atomic<bool> has_ended{false};
std::atomic<int> shown{-1};

[[noreturn]] void fail(const char* what) {
  fprintf(stderr, "closing_worker: %s: %s\n", what, strerror(errno));
  exit(1);
}

// Writes what the file has, so that there is something to be stored when it is closed.
void keep_opening(const std::string& directory) {
  std::minstd_rand random(1);
  for (unsigned round = 0; !has_ended; ++round) {
    const char letter = round % 2 == 0 ? 'A' : 'B';
    const int file = open((directory + "/" + letter).c_str(), O_RDWR);
    if (file < 0) fail("open");
    shown = file;
    const std::vector<char> page(4096, letter);
    const auto piece = static_cast<off_t>(random() % kPieces * kPieceBytes);
    if (round % 8 < 2 && pwrite(file, page.data(), page.size(), piece) < 0) fail("pwrite");
    usleep(random() % 200);
    if (close(file) != 0) fail("close");
  }
}

// Either file's bytes, or none: a number that is closed may be the library's for a moment.
void keep_reading(unsigned seed) {
  std::minstd_rand random(seed);
  std::vector<char> bytes(3 * kPieceBytes);
  while (!has_ended) {
    const std::size_t length = random() % 4 == 0 ? bytes.size() : 4096;
    const auto at = static_cast<off_t>(random() % kPieces * kPieceBytes);
    (void)!pread(shown, bytes.data(), length, at);
  }
}

void keep_syncing() {
  while (!has_ended) {
    (void)fsync(shown);
    usleep(1000);
  }
}

// The duplicates are this thread's alone. One that was made of a number which is just being opened
// may be of nothing.
void keep_duplicating() {
  while (!has_ended) {
    const int made = fcntl(shown, F_DUPFD_CLOEXEC, 100);
    char byte = 0;
    if (made < 0 && errno != EBADF) fail("dup");
    if (made < 0) continue;
    const ssize_t got = pread(made, &byte, 1, 0);
    if (got == 1 ? byte != 'A' && byte != 'B' : errno != EBADF) fail("the duplicate");
    if (close(made) != 0) fail("close of the duplicate");
  }
}

std::size_t wrong_pieces(const std::string& path, char letter) {
  const int file = open(path.c_str(), O_RDONLY);
  if (file < 0) fail("open");
  const std::vector<char> expected(kPieceBytes, letter);
  std::vector<char> bytes(kPieceBytes);
  std::size_t wrong = 0;
  for (std::size_t piece = 0; piece < kPieces; ++piece) {
    const auto at = static_cast<off_t>(piece * kPieceBytes);
    const ssize_t got = pread(file, bytes.data(), bytes.size(), at);
    wrong += got != static_cast<ssize_t>(bytes.size()) || bytes != expected ? 1 : 0;
  }
  close(file);
  return wrong;
}

void run_for(int seconds, const std::vector<std::function<void()>>& works) {
  std::vector<std::thread> threads;
  threads.reserve(works.size());
  for (const std::function<void()>& work : works) threads.emplace_back(work);
  std::this_thread::sleep_for(std::chrono::seconds(seconds));
  has_ended = true;
  for (std::thread& thread : threads) thread.join();
}

bool have_their_letters(const std::string& directory, const char* letters) {
  std::size_t wrong = 0;
  for (; *letters != 0; ++letters) {
    const std::size_t pieces = wrong_pieces(directory + "/" + *letters, *letters);
    printf("wrong pieces of %c: %zu\n", *letters, pieces);
    wrong += pieces;
  }
  return wrong == 0;
}

bool closed(int seconds, const std::string& directory) {
  run_for(seconds,
          {[&] { keep_opening(directory); }, [] { keep_reading(1); }, [] { keep_reading(2); },
           [] { keep_reading(3); }, keep_syncing, keep_duplicating});
  return have_their_letters(directory, "ABZ");
}

void keep_switching(const std::string& directory, int number) {
  for (unsigned round = 0; !has_ended; ++round) {
    const int file = open((directory + (round % 2 == 0 ? "/A" : "/B")).c_str(), O_RDWR);
    if (file < 0 || dup2(file, number) != number || close(file) != 0) fail("switch");
  }
}

void keep_opening_another(const std::string& directory) {
  while (!has_ended) {
    const int file = open((directory + "/Z").c_str(), O_RDWR);
    if (file < 0 || close(file) != 0) fail("open of Z");
  }
}

void keep_using(int number, int spare) {
  for (unsigned round = 0; !has_ended; ++round) {
    char byte = 0;
    const auto at = static_cast<off_t>(round % kFileBytes);
    if (pread(number, &byte, 1, at) != 1 || byte == 'Z') fail("pread");
    if (pwrite(number, "w", 1, at) != 1) fail("pwrite");
    if (round % 4096 == 0 && fsync(number) != 0) fail("fsync");
    const int made = dup(number);
    if (made < 0 || close(made) != 0) fail("dup");
    if (dup2(number, spare) != spare) fail("dup2");
  }
}

bool switched(int seconds, const std::string& directory) {
  const int number = open((directory + "/A").c_str(), O_RDWR);
  constexpr int kSpare = 300;
  run_for(seconds,
          {[&] { keep_switching(directory, number); }, [&] { keep_opening_another(directory); },
           [=] { keep_using(number, kSpare); }, [=] { keep_using(number, kSpare + 1); }});
  return have_their_letters(directory, "Z");
}

void keep_stamping(int number) {
  const timespec times[2] = {{1'000'000'000, 0}, {1'000'000'000, 0}};
  while (!has_ended) {
    (void)!futimens(number, times);
    (void)flock(number, LOCK_EX | LOCK_NB);
  }
}

// How often Z has got a time or a lock.
int opened_meanwhile(const std::string& directory, int number, int plain) {
  const std::string path = directory + "/Z";
  int wrong = 0;
  while (!has_ended) {
    const int file = open((directory + "/A").c_str(), O_RDWR);
    if (dup2(file, number) != number) fail("dup2");
    close(file);
    usleep(50);
    if (dup2(plain, number) != number) fail("dup2");
    const int opened = open(path.c_str(), O_RDWR);
    usleep(50);
    struct stat status{};
    fstat(opened, &status);
    const int again = open(path.c_str(), O_RDWR);
    wrong += status.st_mtime == 1'000'000'000 || flock(again, LOCK_EX | LOCK_NB) != 0 ? 1 : 0;
    close(again);
    close(opened);
  }
  return wrong;
}

bool third(int seconds, const std::string& directory) {
  int ends[2];
  constexpr int kNumber = 300;
  if (pipe(ends) != 0 || dup2(ends[0], kNumber) != kNumber) fail("pipe");
  int wrong = 0;
  const auto stamp = [] { keep_stamping(kNumber); };
  run_for(seconds, {[&] { wrong = opened_meanwhile(directory, kNumber, ends[0]); }, stamp, stamp,
                    stamp, stamp});
  printf("%d times Z has got a time or a lock\n", wrong);
  return wrong == 0;
}

sigjmp_buf before_read;
volatile sig_atomic_t may_jump = 0;

void jump(int) {
  if (may_jump == 0) return;
  may_jump = 0;
  siglongjmp(before_read, 1);
}

void set_timer(int microseconds) {
  itimerval timer{};
  timer.it_value.tv_usec = microseconds;
  setitimer(ITIMER_REAL, &timer, nullptr);
}

// Whether the handler has jumped out of a read.
bool is_read_left(int file, off_t at) {
  static std::vector<char> bytes(1 << 20);
  if (sigsetjmp(before_read, 1) != 0) return true;
  may_jump = 1;
  set_timer(150);
  while (may_jump != 0) (void)!pread(file, bytes.data(), bytes.size(), at);
  return false;
}

// Whether the handler has jumped out of dup2().
bool is_duplicate_left(int file, int spare) {
  if (sigsetjmp(before_read, 1) != 0) return true;
  may_jump = 1;
  set_timer(100);
  while (may_jump != 0) (void)!dup2(file, spare);
  return false;
}

bool jumps(const std::string& directory) {
  signal(SIGALRM, jump);
  int jumped = 0;
  int kept = 0;
  for (const char letter : {'A', 'B', 'Z'}) {
    for (std::size_t at = 0; at < kFileBytes; at += 1 << 20) {
      const std::string path = directory + "/" + letter;
      const int file = open(path.c_str(), O_RDWR);
      if (flock(file, LOCK_EX | LOCK_NB) != 0) fail("flock");
      jumped += is_read_left(file, static_cast<off_t>(at)) ? 1 : 0;
      constexpr int kSpare = 300;
      for (int round = 0; round < 10; ++round) jumped += is_duplicate_left(file, kSpare) ? 1 : 0;
      close(kSpare);
      close(file);
      const int again = open(path.c_str(), O_RDWR);
      kept += flock(again, LOCK_EX | LOCK_NB) != 0 ? 1 : 0;
      close(again);
    }
  }
  printf("jumped %d times; %d locks are kept\n", jumped, kept);
  return kept == 0;
}

bool has_open(const std::string& path) {
  DIR* const numbers = opendir("/proc/self/fd");
  bool has = false;
  while (const dirent* number = readdir(numbers)) {
    char target[4096];
    const std::string link = std::string("/proc/self/fd/") + number->d_name;
    const ssize_t length = readlink(link.c_str(), target, sizeof target);
    has = has || (length > 0 && path == std::string(target, static_cast<std::size_t>(length)));
  }
  closedir(numbers);
  return has;
}

bool forks(const std::string& directory) {
  constexpr int kChildren = 200;
  constexpr int kNumbers = 40;
  const std::string path = directory + "/A";
  const int file = open(path.c_str(), O_RDWR);
  const auto duplicate = [=] {
    while (!has_ended) close(dup(file));
  };
  std::thread one(duplicate);
  std::thread other(duplicate);
  int kept = 0;
  for (int child = 0; child < kChildren; ++child) {
    const pid_t process = fork();
    if (process == 0) {
      for (int number = 3; number < kNumbers; ++number) close(number);
      _exit(has_open(path) ? 1 : 0);
    }
    int status = -1;
    waitpid(process, &status, 0);
    kept += status != 0 ? 1 : 0;
  }
  has_ended = true;
  one.join();
  other.join();
  printf("%d of %d children keep the file\n", kept, kChildren);
  return kept == 0;
}

bool reading(const std::string& directory) {
  const std::string path = directory + "/A";
  const int file = open(path.c_str(), O_RDWR);
  if (flock(file, LOCK_EX | LOCK_NB) != 0) fail("flock");
  std::vector<char> bytes(kFileBytes);
  std::thread reader([&] { (void)!pread(file, bytes.data(), bytes.size(), 0); });
  usleep(3000);
  close(file);
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  reader.join();
  const int again = open(path.c_str(), O_RDWR);
  const bool is_free = flock(again, LOCK_EX | LOCK_NB) == 0;
  printf("the lock is %s\n", is_free ? "free" : "the child's");
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return is_free;
}

}  // namespace

int main(int count, char** words) {
  if (count != 4) return 2;
  const std::string mode = words[1];
  const int seconds = atoi(words[2]);
  const std::string directory = words[3];
  bool is_right = false;
  if (mode == "closed") is_right = closed(seconds, directory);
  if (mode == "switched") is_right = switched(seconds, directory);
  if (mode == "third") is_right = third(seconds, directory);
  if (mode == "reading") is_right = reading(directory);
  if (mode == "jumps") is_right = jumps(directory);
  if (mode == "forks") is_right = forks(directory);
  return is_right ? 0 : 1;
}
