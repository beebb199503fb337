// SPDX-License-Identifier: Apache-2.0
// A worker of this suite: scenes that call the kernel and print what they saw. run.py compares what
// is printed and what is left in the directory with and without Cairn, so a scene prints nothing
// that differs from run to run: no addresses, process numbers or times.
//
//   SCENE(name) { ... say("pread", pread(fd, buffer, 4, 0)); }
//
// Each scene runs in a process and an empty directory of its own.
#pragma once

#include <fcntl.h>

#include <cstddef>

namespace scene {

struct Scene {
  Scene(const char* name, void (*run)());
  const char* name;
  void (*run)();
  Scene* next;
};

// Prints what a call gave, with errno's name when that is -1.
void say(const char* what, long result);
// Prints a result of the raw kind, -errno.
void say_raw(const char* what, long result);
void say_bytes(const char* what, const void* bytes, std::size_t length);
void say_text(const char* what, const char* text);

// Opens a file in the scene's directory, and ends the process if that fails.
int open_file(const char* name, int flags = O_RDWR | O_CREAT);
// The same with something in it.
int make_file(const char* name, const char* content, int flags = O_RDWR | O_CREAT);
// The whole content of a file, as another open of it reads it.
void say_file(const char* name);

}  // namespace scene

#define SCENE(scene_name)                                                           \
  static void scene_##scene_name();                                                 \
  static const scene::Scene register_##scene_name(#scene_name, scene_##scene_name); \
  static void scene_##scene_name()
