// SPDX-License-Identifier: Apache-2.0
#include "base/user_copy.h"

#include <algorithm>

#if defined(CAIRN_USER_COPY)
#include <errno.h>
#include <sys/platform/x86.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "base/system_call.h"

// The routines, as one stretch of code in three parts by what is to be done when an instruction in
// it faults:
//
//  1. cairn_user_copies to cairn_user_copies_by_byte: `to`, `from` and `length` are still (or
//     again) what is to be copied, and no byte behind the fault was stored. It is copied again byte
//     by byte, which shows where the bad page begins.
//  2. To cairn_user_copies_stop: `rep movsb`, which stops at the byte that faults: rcx is what is
//     left.
//  3. The landings themselves, which touch no memory.
//
// Instructions of 32 bytes are used where the processor has them (cairn_copy_is_wide), `rep movsb`
// from the length on where it is the fastest (cairn_copy_string_min).
__asm__(R"(
  .pushsection .data.cairn_copy, "aw", @progbits
  .p2align 3
cairn_copy_string_min:
  .quad -1
cairn_copy_is_wide:
  .byte 0
  .popsection

  .pushsection .text.cairn_copy, "ax", @progbits
  .p2align 6
cairn_user_copies:
  .globl cairn_copy
  .hidden cairn_copy
  .type cairn_copy, @function
cairn_copy:
  .cfi_startproc
  cmpq $32, %rdx
  jb .Lcopy_few
  cmpq $64, %rdx
  ja .Lcopy_many
  movups (%rsi), %xmm0
  movups 16(%rsi), %xmm1
  movups -32(%rsi,%rdx), %xmm2
  movups -16(%rsi,%rdx), %xmm3
  movups %xmm0, (%rdi)
  movups %xmm1, 16(%rdi)
  movups %xmm2, -32(%rdi,%rdx)
  movups %xmm3, -16(%rdi,%rdx)
  xorl %eax, %eax
  ret

.Lcopy_few:
  cmpl $16, %edx
  jb 1f
  movups (%rsi), %xmm0
  movups -16(%rsi,%rdx), %xmm1
  movups %xmm0, (%rdi)
  movups %xmm1, -16(%rdi,%rdx)
  xorl %eax, %eax
  ret
1:
  cmpl $8, %edx
  jb 1f
  movq (%rsi), %rax
  movq -8(%rsi,%rdx), %rcx
  movq %rax, (%rdi)
  movq %rcx, -8(%rdi,%rdx)
  xorl %eax, %eax
  ret
1:
  cmpl $4, %edx
  jb 1f
  movl (%rsi), %eax
  movl -4(%rsi,%rdx), %ecx
  movl %eax, (%rdi)
  movl %ecx, -4(%rdi,%rdx)
  xorl %eax, %eax
  ret
1:
  cmpl $1, %edx
  jb 2f
  je 1f
  movzwl (%rsi), %eax
  movzwl -2(%rsi,%rdx), %ecx
  movw %ax, (%rdi)
  movw %cx, -2(%rdi,%rdx)
  xorl %eax, %eax
  ret
1:
  movzbl (%rsi), %eax
  movb %al, (%rdi)
2:
  xorl %eax, %eax
  ret

.Lcopy_many:
  cmpq cairn_copy_string_min(%rip), %rdx
  jae .Lcopy_string
  cmpb $0, cairn_copy_is_wide(%rip)
  je .Lcopy_narrow
  vmovdqu (%rsi), %ymm0
  cmpq $256, %rdx
  ja .Lcopy_wide_loop
  vmovdqu 32(%rsi), %ymm1
  cmpq $128, %rdx
  ja 1f
  vmovdqu -64(%rsi,%rdx), %ymm2
  vmovdqu -32(%rsi,%rdx), %ymm3
  vmovdqu %ymm0, (%rdi)
  vmovdqu %ymm1, 32(%rdi)
  vmovdqu %ymm2, -64(%rdi,%rdx)
  vmovdqu %ymm3, -32(%rdi,%rdx)
  vzeroupper
  xorl %eax, %eax
  ret
1:
  vmovdqu 64(%rsi), %ymm2
  vmovdqu 96(%rsi), %ymm3
  vmovdqu -128(%rsi,%rdx), %ymm4
  vmovdqu -96(%rsi,%rdx), %ymm5
  vmovdqu -64(%rsi,%rdx), %ymm6
  vmovdqu -32(%rsi,%rdx), %ymm7
  vmovdqu %ymm0, (%rdi)
  vmovdqu %ymm1, 32(%rdi)
  vmovdqu %ymm2, 64(%rdi)
  vmovdqu %ymm3, 96(%rdi)
  vmovdqu %ymm4, -128(%rdi,%rdx)
  vmovdqu %ymm5, -96(%rdi,%rdx)
  vmovdqu %ymm6, -64(%rdi,%rdx)
  vmovdqu %ymm7, -32(%rdi,%rdx)
  vzeroupper
  xorl %eax, %eax
  ret

.Lcopy_wide_loop:
  vmovdqu %ymm0, (%rdi)
  movl %edi, %ecx
  orl $-32, %ecx
  negl %ecx                   # up to where `to` is aligned, 1 to 32
  leaq -128(%rdx), %rax       # where the last 128 bytes begin
  .p2align 5
1:
  vmovdqu (%rsi,%rcx), %ymm0
  vmovdqu 32(%rsi,%rcx), %ymm1
  vmovdqu 64(%rsi,%rcx), %ymm2
  vmovdqu 96(%rsi,%rcx), %ymm3
  vmovdqa %ymm0, (%rdi,%rcx)
  vmovdqa %ymm1, 32(%rdi,%rcx)
  vmovdqa %ymm2, 64(%rdi,%rcx)
  vmovdqa %ymm3, 96(%rdi,%rcx)
  subq $-128, %rcx
  cmpq %rax, %rcx
  jb 1b
  vmovdqu (%rsi,%rax), %ymm0
  vmovdqu 32(%rsi,%rax), %ymm1
  vmovdqu 64(%rsi,%rax), %ymm2
  vmovdqu 96(%rsi,%rax), %ymm3
  vmovdqu %ymm0, (%rdi,%rax)
  vmovdqu %ymm1, 32(%rdi,%rax)
  vmovdqu %ymm2, 64(%rdi,%rax)
  vmovdqu %ymm3, 96(%rdi,%rax)
  vzeroupper
  xorl %eax, %eax
  ret

.Lcopy_narrow:
  movups (%rsi), %xmm0
  movups %xmm0, (%rdi)
  movl %edi, %ecx
  orl $-16, %ecx
  negl %ecx
  leaq -64(%rdx), %rax
  cmpq %rax, %rcx
  jae 2f
  .p2align 5
1:
  movups (%rsi,%rcx), %xmm0
  movups 16(%rsi,%rcx), %xmm1
  movups 32(%rsi,%rcx), %xmm2
  movups 48(%rsi,%rcx), %xmm3
  movaps %xmm0, (%rdi,%rcx)
  movaps %xmm1, 16(%rdi,%rcx)
  movaps %xmm2, 32(%rdi,%rcx)
  movaps %xmm3, 48(%rdi,%rcx)
  addq $64, %rcx
  cmpq %rax, %rcx
  jb 1b
2:
  movups (%rsi,%rax), %xmm0
  movups 16(%rsi,%rax), %xmm1
  movups 32(%rsi,%rax), %xmm2
  movups 48(%rsi,%rax), %xmm3
  movups %xmm0, (%rdi,%rax)
  movups %xmm1, 16(%rdi,%rax)
  movups %xmm2, 32(%rdi,%rax)
  movups %xmm3, 48(%rdi,%rax)
  xorl %eax, %eax
  ret
  .cfi_endproc
  .size cairn_copy, . - cairn_copy

  .globl cairn_copy_streaming
  .hidden cairn_copy_streaming
  .type cairn_copy_streaming, @function
  .p2align 6
cairn_copy_streaming:
  .cfi_startproc
  xorl %ecx, %ecx
  testl $63, %edi
  je 1f
  movups (%rsi), %xmm0
  movups 16(%rsi), %xmm1
  movups 32(%rsi), %xmm2
  movups 48(%rsi), %xmm3
  movups %xmm0, (%rdi)
  movups %xmm1, 16(%rdi)
  movups %xmm2, 32(%rdi)
  movups %xmm3, 48(%rdi)
  movl %edi, %ecx
  orl $-64, %ecx
  negl %ecx                   # up to where a line of `to` begins
1:
  leaq -64(%rdx), %rax        # where the last whole line can begin
  .p2align 5
2:
  movups (%rsi,%rcx), %xmm0
  movups 16(%rsi,%rcx), %xmm1
  movups 32(%rsi,%rcx), %xmm2
  movups 48(%rsi,%rcx), %xmm3
  movntps %xmm0, (%rdi,%rcx)
  movntps %xmm1, 16(%rdi,%rcx)
  movntps %xmm2, 32(%rdi,%rcx)
  movntps %xmm3, 48(%rdi,%rcx)
  addq $64, %rcx
  cmpq %rax, %rcx
  jbe 2b
  sfence                      # before the lock word says that the bytes are there
  addq %rcx, %rdi
  addq %rcx, %rsi
  subq %rcx, %rdx
  jmp cairn_copy
  .cfi_endproc
  .size cairn_copy_streaming, . - cairn_copy_streaming

cairn_user_copies_by_byte:
  .cfi_startproc
.Lcopy_string:
  movq %rdx, %rcx
  rep movsb
  xorl %eax, %eax
  ret
cairn_copy_again:
  vzeroupper
cairn_copy_again_narrow:
  movq %rdx, %rcx
  rep movsb
  .cfi_endproc
cairn_user_copies_stop:
  .cfi_startproc
  sfence
  movq %rcx, %rax
  ret
  .cfi_endproc
  .popsection
)");

// The names of the code above.
// NOLINTBEGIN(readability-identifier-naming)
extern "C" {
extern const char cairn_user_copies[] __attribute__((visibility("hidden")));
extern const char cairn_user_copies_by_byte[] __attribute__((visibility("hidden")));
extern const char cairn_user_copies_stop[] __attribute__((visibility("hidden")));
extern const char cairn_copy_again[] __attribute__((visibility("hidden")));
extern const char cairn_copy_again_narrow[] __attribute__((visibility("hidden")));
extern std::uint8_t cairn_copy_is_wide __attribute__((visibility("hidden")));
extern std::uint64_t cairn_copy_string_min __attribute__((visibility("hidden")));
}
// NOLINTEND(readability-identifier-naming)

namespace cairn {
namespace {

enum CpuidRegister : unsigned { kEbx = 1, kEcx = 2, kEdx = 3 };

constexpr std::uintptr_t kFourLevelsEnd = (std::uintptr_t{1} << 47) - 4096;

// A kernel may leave page tables of five levels alone though the processor has them: then it
// refuses an address behind those of four. (One that looks at no address of nothing says it does
// not.)
bool has_five_levels() {
  constexpr long kBehind = std::uintptr_t{1} << 47;
  return sys::call(SYS_getrandom, kBehind, 0, GRND_NONBLOCK) != -EFAULT;
}

}  // namespace

void tune_user_copy() {
  // Bits of cpuid leaf 7.
  constexpr unsigned kAvx2 = 1U << 5;         // ebx
  constexpr unsigned kFastStrings = 1U << 9;  // ebx: ERMS
  constexpr unsigned kFastShort = 1U << 4;    // edx: FSRM
  constexpr unsigned kFiveLevels = 1U << 16;  // ecx: LA57
  // As the dynamic linker has read them: in a virtual machine each cpuid instruction is an exit to
  // the hypervisor, and four of them take 14 us.
  const cpuid_feature* leaf = __x86_get_cpuid_feature_leaf(CPUID_INDEX_7);
  // The linker calls a feature active when the system keeps its registers, too.
  if ((leaf->active_array[kEbx] & kAvx2) != 0) cairn_copy_is_wide = 1;
  if ((leaf->cpuid_array[kEcx] & kFiveLevels) == 0 || !has_five_levels())
    user_space_end = kFourLevelsEnd;
  // From where the string instruction overtakes a loop, as glibc has it (its manual: tunables
  // glibc.cpu.x86_rep_movsb_threshold).
  if ((leaf->cpuid_array[kEdx] & kFastShort) != 0) {
    cairn_copy_string_min = 2112;
  } else if ((leaf->cpuid_array[kEbx] & kFastStrings) != 0) {
    cairn_copy_string_min = 8192;
  }
}

bool recover_from_fault(void* context) {
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const auto at = static_cast<std::uintptr_t>(registers[REG_RIP]);
  const auto is_between = [at](const char* begin, const char* end) {
    return at >= reinterpret_cast<std::uintptr_t>(begin) &&
           at < reinterpret_cast<std::uintptr_t>(end);
  };
  const auto go_on_at = [&](const char* place) {
    registers[REG_RIP] = static_cast<greg_t>(reinterpret_cast<std::uintptr_t>(place));
    return true;
  };
  if (is_between(cairn_user_copies, cairn_user_copies_by_byte))
    return go_on_at(cairn_copy_is_wide != 0 ? cairn_copy_again : cairn_copy_again_narrow);
  if (is_between(cairn_user_copies_by_byte, cairn_user_copies_stop))
    return go_on_at(cairn_user_copies_stop);
  return false;
}

}  // namespace cairn
#else
namespace cairn {

void tune_user_copy() {}
bool recover_from_fault(void*) { return false; }

}  // namespace cairn
#endif

namespace cairn {
namespace {

constexpr std::size_t kSystemPage = 4096;
constexpr char kZeros[kSystemPage] = {};

}  // namespace

// With page tables of five levels.
constinit std::uintptr_t user_space_end = (std::uintptr_t{1} << 56) - 4096;

std::size_t user_zero(void* to, std::size_t length) {
  auto* out = static_cast<char*>(to);
  while (length > 0) {
    const std::size_t piece = std::min(length, sizeof kZeros);
    const std::size_t missing = user_copy(out, kZeros, piece);
    if (missing > 0) return length - piece + missing;
    out += piece;
    length -= piece;
  }
  return 0;
}

std::size_t readable_bytes(const void* address, std::size_t length) {
  const auto* begin = static_cast<const char*>(address);
  std::size_t done = 0;
  while (done < length) {
    char byte = 0;
    if (!get_user(&byte, begin + done)) break;
    done += kSystemPage - reinterpret_cast<std::uintptr_t>(begin + done) % kSystemPage;
  }
  return std::min(done, length);
}

}  // namespace cairn
