// SPDX-License-Identifier: Apache-2.0
// The C library's streams. Each stream has a file of its own name that nothing else writes, since
// what a buffered stream sees of another writer depends on its buffer's size.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "worker.h"

namespace cairn::differential {
namespace {

std::string stream_name(const Worker& worker, const Operation& op) {
  return "q" + std::to_string(worker.process) + "_" + std::to_string(op.a);
}

void drop(Stream& stream, Text& text) {
  if (stream.file == nullptr) return;
  text.add(" close").result(fclose(stream.file));
  stream = Stream{};
}

void choose_buffer(Stream& stream, Random& random) {
  static constexpr int kSizes[] = {16, 100, 4096, 65536, 70001};
  const auto choice = random.below(8);
  if (choice == 0) {
    setvbuf(stream.file, nullptr, _IONBF, 0);
  } else if (choice == 1) {
    setvbuf(stream.file, nullptr, _IOLBF, 0);
  } else if (choice == 2) {
    const auto size = static_cast<std::size_t>(kSizes[random.below(5)]);
    stream.buffer = std::make_unique<char[]>(size);
    setvbuf(stream.file, stream.buffer.get(), _IOFBF, size);
  }
}

constexpr const char* kModes[] = {"r", "r+", "w", "w+", "a", "a+", "r+", "w+", "w+e", "w+x"};

void run_fopen(Worker& worker, Stream& stream, const Operation& op, Text& text) {
  Random random(op.seed);
  drop(stream, text);
  const std::string name = stream_name(worker, op);
  const char* mode = kModes[random.below(10)];
  text.add("(%s,%s)", name.c_str(), mode);
  if (op.kind == Kind::fopen) {
    stream.file = random.one_in(2) ? fopen(name.c_str(), mode) : fopen64(name.c_str(), mode);
  } else {
    mode = random.one_in(2) ? "r+" : "a+";
    const int fd = open(name.c_str(), O_RDWR | O_CREAT | (mode[0] == 'a' ? O_APPEND : 0), 0644);
    text.add(" fd").descriptor(worker, fd);
    if (fd < 0) return;
    if (random.one_in(2)) lseek(fd, random.below(9000), SEEK_SET);
    // A duplicate, as numpy's tofile makes it: the stream shares the offset with the original.
    const int copy = dup(fd);
    stream.file = fdopen(copy, mode);
    close(fd);
  }
  text.result(stream.file == nullptr ? -1 : 0);
  if (stream.file == nullptr) return;
  choose_buffer(stream, random);
  text.add(" fileno").descriptor(worker, fileno(stream.file));
}

void run_freopen(Worker& worker, Stream& stream, const Operation& op, Text& text) {
  const std::string name = stream_name(worker, op);
  const char* mode = op.d % 3 == 0 ? "r" : op.d % 3 == 1 ? "a+" : "r+";
  text.add("(%s,%s)", name.c_str(), mode);
  stream.file = freopen(name.c_str(), mode, stream.file);
  text.result(stream.file == nullptr ? -1 : 0);
  stream.last = 0;
}

// C demands a positioning call between reading and writing.
void turn(Stream& stream, char direction) {
  if (stream.last != 0 && stream.last != direction) fseeko(stream.file, 0, SEEK_CUR);
  stream.last = direction;
}

void add_state(const Stream& stream, Text& text) {
  text.add(" tell").result(ftello(stream.file));
  if (feof(stream.file)) text.add(" eof");
  if (ferror(stream.file)) text.add(" error");
  clearerr(stream.file);
}

void run_fread(Stream& stream, const Operation& op, Text& text) {
  static constexpr std::size_t kRecords[] = {1, 7, 100, 512, 4096};
  const std::size_t record = kRecords[op.d % 5];
  const std::size_t count = static_cast<std::size_t>(op.c) / record;
  turn(stream, 'r');
  std::size_t total = 0;
  std::uint64_t hash = 0;
  if (op.seed % 4 == 0) {  // byte by byte
    int byte;
    while (total < std::min<std::size_t>(count * record, 3000) &&
           (byte = getc(stream.file)) != EOF) {
      const char value = static_cast<char>(byte);
      hash = hash_bytes(&value, 1, hash);
      ++total;
    }
    text.add("(getc) %zu", total);
  } else {
    memset(read_buffer(), 0, record * count);
    total = fread(read_buffer(), record, count, stream.file);
    // A partial last record is in the buffer as well, only its extent is not reported.
    hash = hash_bytes(read_buffer(), static_cast<std::int64_t>(total * record));
    text.add("(%zu,%zu) %zu", record, count, total);
  }
  text.add(" %016llx", static_cast<unsigned long long>(hash));
  add_state(stream, text);
}

void run_fwrite(Stream& stream, const Operation& op, Text& text) {
  static constexpr std::size_t kRecords[] = {1, 10, 100, 512, 4096};
  const std::size_t record = kRecords[op.d % 5];
  const std::size_t count = static_cast<std::size_t>(op.c) / record;
  turn(stream, 'w');
  fill_pattern(write_buffer(), op.c, op.seed);
  std::size_t total = 0;
  if (op.seed % 4 == 0) {
    const auto bytes = std::min<std::size_t>(count * record, 3000);
    while (total < bytes && putc(write_buffer()[total], stream.file) != EOF) ++total;
    text.add("(putc) %zu", total);
  } else {
    total = fwrite(write_buffer(), record, count, stream.file);
    text.add("(%zu,%zu) %zu", record, count, total);
  }
  add_state(stream, text);
}

void run_text(Stream& stream, const Operation& op, Text& text) {
  char* buffer = read_buffer();
  switch (op.kind) {
    case Kind::fgets: {
      turn(stream, 'r');
      memset(buffer, 0, 5001);
      const char* got = fgets(buffer, 2 + static_cast<int>(op.d % 5000), stream.file);
      text.add("=%d %016llx", got != nullptr, (unsigned long long)hash_bytes(buffer, 5001));
      break;
    }
    case Kind::fputs:
      turn(stream, 'w');
      memset(buffer, static_cast<int>('a' + op.d % 26), static_cast<std::size_t>(op.c % 3000));
      buffer[op.c % 3000] = '\n';
      buffer[op.c % 3000 + 1] = '\0';
      text.add("=%d", fputs(buffer, stream.file) >= 0);
      break;
    case Kind::fprintf:
      turn(stream, 'w');
      text.add("=%d", fprintf(stream.file, "%lld %s %.3f\n", static_cast<long long>(op.d),
                              "a line of text", static_cast<double>(op.b) / 7));
      break;
    default: {
      turn(stream, 'r');
      memset(buffer, 0, 256);
      long long number = 0;
      const int got = fscanf(stream.file, "%lld %200s", &number, buffer);
      text.add("=%d %lld %016llx", got, number, (unsigned long long)hash_bytes(buffer, 256));
    }
  }
  add_state(stream, text);
}

void run_fpeek(Worker& worker, Stream& stream, const Operation& op, Text& text) {
  text.add(" flush").result(fflush(stream.file));
  const std::string name = stream_name(worker, op);
  const int fd = open(name.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat stat;
  if (fd < 0) return;
  if (fstat(fd, &stat) == 0) add_stat(worker, text, stat);
  const ssize_t got = pread(fd, read_buffer(), kTransferBytesMax, op.b % 9000);
  text.add(" got").result(got);
  if (got > 0) text.add(" %016llx", (unsigned long long)hash_bytes(read_buffer(), got));
  close(fd);
  stream.last = 0;
  // fflush on a stream that was being read moves its descriptor; position it anew.
  fseeko(stream.file, op.b % 9000, SEEK_SET);
}

}  // namespace

void run_stdio(Worker& worker, const Operation& op, Text& text) {
  static constexpr int kWhence[] = {SEEK_SET, SEEK_CUR, SEEK_END};
  Stream& stream = worker.streams[static_cast<std::size_t>(op.a)];
  text.add("[%lld]", static_cast<long long>(op.a));
  if (op.kind == Kind::fopen || op.kind == Kind::fdopen) return run_fopen(worker, stream, op, text);
  if (stream.file == nullptr) {
    text.add(" skip");
    return;
  }
  switch (op.kind) {
    case Kind::fclose:
      drop(stream, text);
      return;
    case Kind::freopen:
      return run_freopen(worker, stream, op, text);
    case Kind::fread:
      return run_fread(stream, op, text);
    case Kind::fwrite:
      return run_fwrite(stream, op, text);
    case Kind::fseek: {
      const std::int64_t offset = op.seed & 1 ? op.b % 200000 : -(op.b % 20000);
      text.add("(%lld,%d)", static_cast<long long>(offset), kWhence[op.d % 3]);
      text.result(fseeko(stream.file, offset, kWhence[op.d % 3]));
      stream.last = 0;
      add_state(stream, text);
      return;
    }
    case Kind::ftell:
      add_state(stream, text);
      return;
    case Kind::ungetc: {
      turn(stream, 'r');
      const int pushed = ungetc('A' + static_cast<int>(op.d % 26), stream.file);
      const int tell_or_get = op.seed & 1 ? getc(stream.file) : 0;
      text.add("=%d %d", pushed, tell_or_get);
      fseeko(stream.file, 0, SEEK_CUR);
      add_state(stream, text);
      return;
    }
    case Kind::fflush:
      text.result(fflush(stream.file));
      stream.last = 0;
      fseeko(stream.file, 0, SEEK_CUR);
      return;
    case Kind::fpeek:
      return run_fpeek(worker, stream, op, text);
    default:
      return run_text(stream, op, text);
  }
}

}  // namespace cairn::differential
