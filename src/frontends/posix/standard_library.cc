// SPDX-License-Identifier: Apache-2.0
// The few functions of libstdc++ that the library needs, without exceptions behind them.
//
// libstdc++'s own bring all its machinery along: in each process it allocates 73 KB at the start,
// for exceptions that this library never throws, and the loader maps 85 KB of code more. A failure
// ends the program here as it does there, where nobody could catch the exception.
//
// Only in optimized builds: without inlining, others need more of the library, and its own
// functions come with that.
//
// Thread safety: any thread.
#ifdef NDEBUG
#include <stdlib.h>

#include <cstddef>
#include <new>

void* operator new(std::size_t size) {
  void* memory = malloc(size != 0 ? size : 1);
  if (memory == nullptr) abort();
  return memory;
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return malloc(size != 0 ? size : 1);
}
void operator delete(void* memory) noexcept { free(memory); }
void operator delete(void* memory, std::size_t) noexcept { free(memory); }

// NOLINTBEGIN(cert-dcl58-cpp,bugprone-reserved-identifier)
namespace std {

const nothrow_t nothrow{};

// Templates of the standard library call these.
void __throw_bad_alloc() { abort(); }
void __throw_logic_error(const char*) { abort(); }
void __throw_length_error(const char*) { abort(); }
void __throw_out_of_range_fmt(const char*, ...) { abort(); }

}  // namespace std
// NOLINTEND(cert-dcl58-cpp,bugprone-reserved-identifier)
#endif
