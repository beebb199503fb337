// SPDX-License-Identifier: Apache-2.0
// Redis and memcached over a UNIX socket, as cheaply as a client can speak to them: requests are
// put together in one buffer, up to `depth` of them are written at once, and the answers are
// compared byte by byte with what must come. There is no parser, no allocation and no copy beyond
// that, so the client is not what is measured.
//
// Protocols: RESP2 (https://redis.io/docs/reference/protocol-spec/), memcached's text protocol
// (doc/protocol.txt of its sources). create, update and look-up are SET NX, SET XX and GET, and
// add, replace and get: each answers whether the record was there, as the catalog does.
//
// Keys are printable, because memcached allows no others: four characters for three bytes.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include "metadata_store.h"

namespace metadata {

// The bytes of a key in 64 printable characters, most significant first.
inline void append_printable(std::string* text, std::span<const uint64_t> words) {
  static constexpr char kDigits[] =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";
  unsigned __int128 bits = 0;
  int count = 0;
  for (const uint64_t word : words) {
    bits = bits << 64 | word;
    for (count += 64; count >= 6; count -= 6) {
      text->push_back(kDigits[static_cast<unsigned>(bits >> (count - 6)) & 63]);
    }
  }
  if (count > 0) text->push_back(kDigits[static_cast<unsigned>(bits << (6 - count)) & 63]);
}

class Peer : public Store {
 public:
  Peer(const std::string& path, unsigned depth, uint32_t records) : depth_(depth) {
    if (depth == 0 || depth > kDepthMax) worker::fail("--depth: 1 to 256");
    connect_to(path);
    for (uint32_t number = 0; number < records; ++number) {
      const Key key = key_of(number);
      const uint64_t words[] = {key.device, key.inode, static_cast<uint64_t>(key.birth_ns)};
      append_printable(&object_keys_, words);
      const uint64_t place[] = {uint64_t{number / kBlocksPerObject + 1} << 32 |
                                number % kBlocksPerObject};
      append_printable(&block_keys_, place);
    }
    records_ = records;
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  ~Peer() override { close(socket_); }

  void run(Kind kind, Operation operation, std::span<const uint32_t> numbers,
           uint32_t version) override {
    run_at(depth_, kind, operation, numbers, version);
  }
  void check(Kind kind, std::span<const uint32_t> numbers, uint32_t version) override {
    run_at(kDepthMax, kind, Operation::kLookUp, numbers, version);
  }

 protected:
  // Adds one request to request_ and the answer that it must get to expected_.
  virtual void append(Operation operation, std::string_view key, std::string_view value) = 0;

  // A length up to 999 in decimal, without what snprintf() costs.
  static std::string_view decimal(size_t length) {
    static char digits[3];
    char* first = digits + sizeof digits;
    do {
      *--first = static_cast<char>('0' + length % 10);
      length /= 10;
    } while (length > 0 && first > digits);
    return {first, static_cast<size_t>(digits + sizeof digits - first)};
  }

  std::string request_;
  std::string expected_;

 private:
  // So many requests or answers fit a socket's buffer: all are sent before the first answer is
  // read.
  static constexpr unsigned kDepthMax = 256;
  static constexpr size_t kObjectBytes = 128;
  static constexpr size_t kBlockBytes = 8;

  void run_at(size_t depth, Kind kind, Operation operation, std::span<const uint32_t> numbers,
              uint32_t version) {
    for (size_t done = 0; done < numbers.size();) {
      const size_t batch = std::min(depth, numbers.size() - done);
      request_.clear();
      expected_.clear();
      for (const uint32_t number : numbers.subspan(done, batch)) {
        const uint32_t wanted = operation == Operation::kLookUp   ? version
                                : operation == Operation::kUpdate ? 1
                                                                  : 0;
        char value[kObjectBytes];
        append(operation, key(kind, number), value_of(kind, number, wanted, value));
      }
      exchange();
      done += batch;
    }
  }

  void connect_to(const std::string& path) {
    socket_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    worker::require(socket_ >= 0, "socket");
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) worker::fail("--socket: the path is too long");
    memcpy(address.sun_path, path.c_str(), path.size() + 1);
    worker::require(connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0,
                    "connect to " + path);
  }

  std::string_view key(Kind kind, uint32_t number) const {
    const std::string& keys = kind == Kind::kObject ? object_keys_ : block_keys_;
    const size_t length = keys.size() / records_;
    return std::string_view(keys).substr(number * length, length);
  }

  static std::string_view value_of(Kind kind, uint32_t number, uint32_t version, char* buffer) {
    if (kind == Kind::kBlock) {
      const uint64_t place = uint64_t{version + 1} << 32 | number;
      memcpy(buffer, &place, sizeof place);
      return {buffer, kBlockBytes};
    }
    const Content content = content_of(number, version);
    const Key key = key_of(number);
    memset(buffer, 0, kObjectBytes);
    memcpy(buffer, &key, sizeof key);
    memcpy(buffer + sizeof key, &content, sizeof content);
    return {buffer, kObjectBytes};
  }

  // Sends what was put together and compares the answers as they come, so that a refusal, which is
  // shorter or longer, ends the worker instead of having it wait.
  void exchange() {
    for (size_t sent = 0; sent < request_.size();) {
      const ssize_t done =
          send(socket_, request_.data() + sent, request_.size() - sent, MSG_NOSIGNAL);
      worker::require(done > 0, "send");
      sent += static_cast<size_t>(done);
    }
    answer_.resize(std::max(answer_.size(), expected_.size()));
    for (size_t received = 0; received < expected_.size();) {
      const ssize_t done = recv(socket_, answer_.data() + received, answer_.size() - received, 0);
      worker::require(done > 0, "receive");
      const auto length = static_cast<size_t>(done);
      if (received + length > expected_.size() ||
          memcmp(answer_.data() + received, expected_.data() + received, length) != 0) {
        worker::fail("wrong answer: " + answer_.substr(received, std::min<size_t>(length, 80)));
      }
      received += length;
    }
  }

  int socket_ = -1;
  unsigned depth_;
  uint32_t records_ = 0;
  std::string object_keys_;
  std::string block_keys_;
  std::string answer_;
};

class Redis final : public Peer {
 public:
  using Peer::Peer;

 private:
  void append(Operation operation, std::string_view key, std::string_view value) override {
    if (operation == Operation::kLookUp) {
      request_ += "*2\r\n$3\r\nGET\r\n";
      add_bulk(&request_, key);
      add_bulk(&expected_, value);
      return;
    }
    request_ += "*4\r\n$3\r\nSET\r\n";
    add_bulk(&request_, key);
    add_bulk(&request_, value);
    request_ += operation == Operation::kCreate ? "$2\r\nNX\r\n" : "$2\r\nXX\r\n";
    expected_ += "+OK\r\n";
  }

  static void add_bulk(std::string* text, std::string_view bytes) {
    *text += '$';
    *text += decimal(bytes.size());
    *text += "\r\n";
    *text += bytes;
    *text += "\r\n";
  }
};

class Memcached final : public Peer {
 public:
  using Peer::Peer;

 private:
  void append(Operation operation, std::string_view key, std::string_view value) override {
    if (operation == Operation::kLookUp) {
      request_ += "get ";
      request_ += key;
      request_ += "\r\n";
      expected_ += "VALUE ";
      add_item(&expected_, key, value, " 0 ");
      expected_ += "END\r\n";
      return;
    }
    request_ += operation == Operation::kCreate ? "add " : "replace ";
    add_item(&request_, key, value, " 0 0 ");
    expected_ += "STORED\r\n";
  }

  // "<key> <flags> [<expiry>] <bytes>\r\n<data>\r\n"
  static void add_item(std::string* text, std::string_view key, std::string_view value,
                       const char* between) {
    *text += key;
    *text += between;
    *text += decimal(value.size());
    *text += "\r\n";
    *text += value;
    *text += "\r\n";
  }
};

}  // namespace metadata
