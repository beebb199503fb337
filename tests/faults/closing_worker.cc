// SPDX-License-Identifier: Apache-2.0
//
// A program whose threads use a number that another thread closes and opens again meanwhile:
//   cairn_closing_worker SECONDS DIRECTORY
// DIRECTORY has the files A and B of kFileBytes, each full of its letter. Natively it harms nobody:
// a call gets one of the files, or an error. Exit status 0: afterwards both have their letters.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
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

}  // namespace

int main(int count, char** words) {
  if (count != 3) return 2;
  const std::string directory = words[2];
  std::vector<std::thread> threads;
  threads.emplace_back(keep_opening, directory);
  for (unsigned seed = 1; seed < 4; ++seed) threads.emplace_back(keep_reading, seed);
  threads.emplace_back(keep_syncing);
  threads.emplace_back(keep_duplicating);
  std::this_thread::sleep_for(std::chrono::seconds(atoi(words[1])));
  has_ended = true;
  for (std::thread& thread : threads) thread.join();
  const std::size_t wrong_a = wrong_pieces(directory + "/A", 'A');
  const std::size_t wrong_b = wrong_pieces(directory + "/B", 'B');
  printf("wrong: %zu of A, %zu of B\n", wrong_a, wrong_b);
  return wrong_a + wrong_b == 0 ? 0 : 1;
}
