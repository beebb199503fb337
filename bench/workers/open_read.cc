// SPDX-License-Identifier: Apache-2.0
//
// The smallest program that does I/O: open FILE, read its first byte, close it.
#include "worker.h"

int main(int count, char** words) {
  std::string path = worker::Options(count, words).positional(0);
  int descriptor = open(path.c_str(), O_RDONLY);
  worker::require(descriptor >= 0, "open " + path);
  char byte = 0;
  worker::require(read(descriptor, &byte, 1) == 1, "read");
  worker::require(close(descriptor) == 0, "close");
  return 0;
}
