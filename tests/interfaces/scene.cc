// SPDX-License-Identifier: Apache-2.0
#include "scene.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <cctype>
#include <cstdio>
#include <cstdlib>

namespace scene {
namespace {

Scene* first = nullptr;

[[noreturn]] void give_up(const char* what) {
  std::printf("%s: %s\n", what, strerrorname_np(errno));
  std::exit(3);
}

}  // namespace

Scene::Scene(const char* given_name, void (*given_run)())
    : name(given_name), run(given_run), next(first) {
  first = this;
}

void say(const char* what, long result) {
  if (result == -1) {
    std::printf("%s: %s\n", what, strerrorname_np(errno));
  } else {
    std::printf("%s: %ld\n", what, result);
  }
}

void say_raw(const char* what, long result) {
  if (result < 0) {
    std::printf("%s: %s\n", what, strerrorname_np(static_cast<int>(-result)));
  } else {
    std::printf("%s: %ld\n", what, result);
  }
}

void say_bytes(const char* what, const void* bytes, std::size_t length) {
  std::printf("%s: %zu bytes \"", what, length);
  constexpr std::size_t kShownMax = 64;
  for (std::size_t at = 0; at < length && at < kShownMax; ++at) {
    const auto byte = static_cast<const unsigned char*>(bytes)[at];
    if (std::isprint(byte) != 0) {
      std::putchar(byte);
    } else {
      std::printf("\\%02x", byte);
    }
  }
  std::puts("\"");
}

void say_text(const char* what, const char* text) { std::printf("%s: %s\n", what, text); }

int open_file(const char* name, int flags) {
  const int fd = open(name, flags, 0644);
  if (fd < 0) give_up(name);
  return fd;
}

int make_file(const char* name, const char* content, int flags) {
  const int maker = open_file(name, O_WRONLY | O_CREAT | O_TRUNC);
  const auto length = static_cast<ssize_t>(strlen(content));
  if (write(maker, content, static_cast<std::size_t>(length)) != length) give_up(name);
  close(maker);
  return open_file(name, flags);
}

void say_file(const char* name) {
  const int fd = open(name, O_RDONLY);
  if (fd < 0) return say(name, fd);
  char content[4096];
  const ssize_t got = read(fd, content, sizeof content);
  if (got < 0) return say(name, got);
  say_bytes(name, content, static_cast<std::size_t>(got));
  close(fd);
}

}  // namespace scene

// Without an argument: the names of all scenes.
int main(int count, char** arguments) {
  setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  for (const scene::Scene* scene = scene::first; scene != nullptr; scene = scene->next) {
    if (count < 2) std::puts(scene->name);
    if (count < 2 || strcmp(scene->name, arguments[1]) != 0) continue;
    scene->run();
    return 0;
  }
  return count < 2 ? 0 : 2;
}
