// SPDX-License-Identifier: Apache-2.0
// Every system call of the kernel and what syscall() does with its number. A number is in one of
// the groups below; one that is not is a new one of the kernel, and is passed on like those that
// need nothing: where it takes a descriptor of a buffered file it meets the placeholder and fails.
//
// tests/interfaces/syscall_table.py compares the groups with the numbers of the kernel's headers.
//
// Thread safety: constant.
#pragma once

#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>

// Newer than the headers of Debian 12; these have one number everywhere.
// NOLINTBEGIN(readability-identifier-naming): the kernel's names.
#ifndef SYS_cachestat
#define SYS_cachestat 451
#define SYS_fchmodat2 452
#define SYS_map_shadow_stack 453
#define SYS_futex_wake 454
#define SYS_futex_wait 455
#define SYS_futex_requeue 456
#endif
#ifndef SYS_statmount
#define SYS_statmount 457
#define SYS_listmount 458
#define SYS_lsm_get_self_attr 459
#define SYS_lsm_set_self_attr 460
#define SYS_lsm_list_modules 461
#define SYS_mseal 462
#endif
#ifndef SYS_setxattrat
#define SYS_setxattrat 463
#define SYS_getxattrat 464
#define SYS_listxattrat 465
#define SYS_removexattrat 466
#endif
#ifndef SYS_open_tree_attr
#define SYS_open_tree_attr 467
#endif
#ifndef SYS_file_getattr
#define SYS_file_getattr 468
#define SYS_file_setattr 469
#endif
#ifndef SYS_listns
#define SYS_listns 470
#endif
// NOLINTEND(readability-identifier-naming)

namespace cairn {

enum class RawCall : std::uint8_t {
  kNeedsNothing,
  kTranslated,  // carried out by the hook of the same name, or with a private descriptor
  kPrepared,    // the kernel carries it out on the caller's stack, after something was done
  kRefused,     // ENOSYS
};

// Several to a line.
// clang-format off

// They move bytes, name descriptors, or change what the buffer knows of a file.
inline constexpr long kTranslatedCalls[] = {
    SYS_read, SYS_write, SYS_openat, SYS_close, SYS_fstat, SYS_lseek, SYS_mmap, SYS_munmap,
    SYS_mremap, SYS_ioctl, SYS_pread64, SYS_pwrite64, SYS_readv, SYS_writev, SYS_dup, SYS_dup3,
    SYS_fcntl, SYS_flock, SYS_fsync, SYS_fdatasync, SYS_truncate, SYS_ftruncate, SYS_fchmod,
    SYS_fchown, SYS_sendfile, SYS_splice, SYS_sync, SYS_syncfs, SYS_preadv, SYS_pwritev,
    SYS_preadv2, SYS_pwritev2, SYS_fallocate, SYS_copy_file_range, SYS_statx, SYS_newfstatat,
    SYS_unlinkat, SYS_renameat2, SYS_utimensat, SYS_close_range, SYS_openat2, SYS_sync_file_range,
    SYS_fgetxattr, SYS_fsetxattr, SYS_flistxattr, SYS_fremovexattr, SYS_epoll_ctl, SYS_io_submit,
    SYS_io_destroy, SYS_fadvise64, SYS_readahead, SYS_tee, SYS_getdents64, SYS_ppoll, SYS_pselect6,
    SYS_cachestat, SYS_fchmodat, SYS_fchmodat2, SYS_fchownat, SYS_linkat, SYS_setxattr,
    SYS_lsetxattr, SYS_removexattr, SYS_lremovexattr, SYS_setxattrat, SYS_getxattrat,
    SYS_listxattrat, SYS_removexattrat, SYS_file_getattr, SYS_file_setattr, SYS_open_by_handle_at,
    SYS_pidfd_getfd, SYS_open_tree, SYS_finit_module, SYS_kexec_file_load, SYS_setrlimit,
    SYS_prlimit64, SYS_chroot, SYS_pivot_root, SYS_unshare, SYS_setns, SYS_prctl, SYS_execve,
    SYS_execveat,
#if defined(__x86_64__)
    SYS_open, SYS_creat, SYS_stat, SYS_lstat, SYS_dup2, SYS_unlink, SYS_rename, SYS_renameat,
    SYS_poll, SYS_select, SYS_getdents, SYS_futimesat, SYS_utimes, SYS_utime, SYS_chmod, SYS_chown,
    SYS_lchown, SYS_link,
#endif
};

// clone() and its like return twice on the stack of their caller, so no frame of ours may be on it.
inline constexpr long kPreparedCalls[] = {SYS_clone, SYS_clone3};

// Reads and writes of io_uring would pass by every hook.
inline constexpr long kRefusedCalls[] = {SYS_io_uring_setup};

// Processes, threads, users, signals, time, memory and the machine: no file is named. A raw
// change of user passes by the preparations for programs that cannot be intercepted.
inline constexpr long kCallsWithoutFiles[] = {
    SYS_mprotect, SYS_brk, SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_sched_yield,
    SYS_msync, SYS_mincore, SYS_madvise, SYS_shmget, SYS_shmat, SYS_shmctl, SYS_nanosleep,
    SYS_getitimer, SYS_setitimer, SYS_getpid, SYS_exit, SYS_wait4, SYS_kill, SYS_uname,
    SYS_semget, SYS_semop, SYS_semctl, SYS_shmdt, SYS_msgget, SYS_msgsnd, SYS_msgrcv, SYS_msgctl,
    SYS_umask, SYS_gettimeofday, SYS_getrlimit, SYS_getrusage, SYS_sysinfo, SYS_times, SYS_ptrace,
    SYS_getuid, SYS_syslog, SYS_getgid, SYS_setuid, SYS_setgid, SYS_geteuid, SYS_getegid,
    SYS_setpgid, SYS_getppid, SYS_setsid, SYS_setreuid, SYS_setregid, SYS_getgroups, SYS_setgroups,
    SYS_setresuid, SYS_getresuid, SYS_setresgid, SYS_getresgid, SYS_getpgid, SYS_setfsuid,
    SYS_setfsgid, SYS_getsid, SYS_capget, SYS_capset, SYS_rt_sigpending, SYS_rt_sigtimedwait,
    SYS_rt_sigqueueinfo, SYS_rt_sigsuspend, SYS_sigaltstack, SYS_personality, SYS_getpriority,
    SYS_setpriority, SYS_sched_setparam, SYS_sched_getparam, SYS_sched_setscheduler,
    SYS_sched_getscheduler, SYS_sched_get_priority_max, SYS_sched_get_priority_min,
    SYS_sched_rr_get_interval, SYS_mlock, SYS_munlock, SYS_mlockall, SYS_munlockall, SYS_vhangup,
    SYS_adjtimex, SYS_settimeofday, SYS_reboot, SYS_sethostname, SYS_setdomainname,
    SYS_init_module, SYS_delete_module, SYS_gettid, SYS_tkill, SYS_futex, SYS_sched_setaffinity,
    SYS_sched_getaffinity, SYS_remap_file_pages, SYS_set_tid_address, SYS_restart_syscall,
    SYS_semtimedop, SYS_timer_create, SYS_timer_settime, SYS_timer_gettime, SYS_timer_getoverrun,
    SYS_timer_delete, SYS_clock_settime, SYS_clock_gettime, SYS_clock_getres, SYS_clock_nanosleep,
    SYS_exit_group, SYS_tgkill, SYS_mbind, SYS_set_mempolicy, SYS_get_mempolicy, SYS_kexec_load,
    SYS_waitid, SYS_add_key, SYS_request_key, SYS_keyctl, SYS_ioprio_set, SYS_ioprio_get,
    SYS_migrate_pages, SYS_set_robust_list, SYS_get_robust_list, SYS_move_pages,
    SYS_rt_tgsigqueueinfo, SYS_clock_adjtime, SYS_getcpu, SYS_process_vm_readv,
    SYS_process_vm_writev, SYS_sched_setattr, SYS_sched_getattr, SYS_seccomp, SYS_getrandom,
    SYS_membarrier, SYS_mlock2, SYS_pkey_mprotect, SYS_pkey_alloc, SYS_pkey_free,
    SYS_rseq, SYS_process_madvise, SYS_process_mrelease, SYS_futex_waitv,
    SYS_set_mempolicy_home_node, SYS_map_shadow_stack, SYS_futex_wake, SYS_futex_wait,
    SYS_futex_requeue, SYS_lsm_get_self_attr, SYS_lsm_set_self_attr, SYS_lsm_list_modules,
    SYS_mseal, SYS_nfsservctl,
#if defined(__x86_64__)
    SYS_pause, SYS_alarm, SYS_fork, SYS_vfork, SYS_getpgrp, SYS_modify_ldt, SYS_arch_prctl,
    SYS_iopl, SYS_ioperm, SYS_set_thread_area, SYS_get_thread_area, SYS_time,
#endif
};

// Descriptors of other kinds: sockets, pipes, queues, timers, namespaces. These calls refuse a
// buffered file, and its placeholder with the same error or with EBADF.
inline constexpr long kCallsOfOtherDescriptors[] = {
    SYS_socket, SYS_connect, SYS_accept, SYS_sendto, SYS_recvfrom, SYS_sendmsg, SYS_recvmsg,
    SYS_shutdown, SYS_bind, SYS_listen, SYS_getsockname, SYS_getpeername, SYS_socketpair,
    SYS_setsockopt, SYS_getsockopt, SYS_pipe2, SYS_mq_open, SYS_mq_unlink, SYS_mq_timedsend,
    SYS_mq_timedreceive, SYS_mq_notify, SYS_mq_getsetattr, SYS_inotify_init1,
    SYS_inotify_add_watch, SYS_inotify_rm_watch, SYS_vmsplice, SYS_epoll_pwait, SYS_epoll_pwait2,
    SYS_timerfd_create, SYS_timerfd_settime, SYS_timerfd_gettime, SYS_accept4, SYS_signalfd4,
    SYS_eventfd2, SYS_epoll_create1, SYS_perf_event_open, SYS_recvmmsg, SYS_sendmmsg,
    SYS_fanotify_init, SYS_fanotify_mark, SYS_kcmp, SYS_memfd_create, SYS_memfd_secret, SYS_bpf,
    SYS_userfaultfd, SYS_pidfd_send_signal, SYS_pidfd_open, SYS_io_setup, SYS_io_getevents,
    SYS_io_pgetevents, SYS_io_cancel, SYS_io_uring_enter, SYS_io_uring_register, SYS_listns,
    SYS_landlock_create_ruleset, SYS_landlock_add_rule, SYS_landlock_restrict_self, SYS_fsopen,
    SYS_fsconfig, SYS_fsmount, SYS_fspick, SYS_move_mount, SYS_mount_setattr, SYS_statmount,
    SYS_listmount, SYS_open_tree_attr, SYS_quotactl_fd,
#if defined(__x86_64__)
    SYS_pipe, SYS_epoll_create, SYS_epoll_ctl_old, SYS_epoll_wait_old, SYS_epoll_wait,
    SYS_inotify_init, SYS_signalfd, SYS_eventfd,
#endif
};

// The namespace is the kernel's own, and a placeholder serves as its directory or its file.
inline constexpr long kCallsOfNames[] = {
    SYS_getcwd, SYS_chdir, SYS_fchdir, SYS_statfs, SYS_fstatfs, SYS_acct,
    SYS_mount, SYS_umount2, SYS_swapon, SYS_swapoff, SYS_quotactl, SYS_getxattr, SYS_lgetxattr,
    SYS_listxattr, SYS_llistxattr, SYS_lookup_dcookie, SYS_mkdirat, SYS_mknodat, SYS_symlinkat,
    SYS_readlinkat, SYS_faccessat, SYS_faccessat2, SYS_name_to_handle_at,
#if defined(__x86_64__)
    SYS_access, SYS_mkdir, SYS_rmdir, SYS_symlink, SYS_readlink, SYS_mknod, SYS_ustat, SYS_sysfs,
    SYS_uselib,
#endif
};

// Numbers that no kernel of today answers.
#if defined(__x86_64__)
inline constexpr long kForgottenCalls[] = {
    SYS__sysctl, SYS_create_module, SYS_get_kernel_syms, SYS_query_module, SYS_getpmsg,
    SYS_putpmsg, SYS_afs_syscall, SYS_tuxcall, SYS_security, SYS_vserver,
};
#endif

// clang-format on

inline constexpr unsigned kRawCallsMax = 512;

inline constexpr std::array<RawCall, kRawCallsMax> kRawCalls = [] {
  std::array<RawCall, kRawCallsMax> table{};
  for (const long number : kTranslatedCalls) table[number] = RawCall::kTranslated;
  for (const long number : kPreparedCalls) table[number] = RawCall::kPrepared;
  for (const long number : kRefusedCalls) table[number] = RawCall::kRefused;
  return table;
}();

static_assert(std::count(kRawCalls.begin(), kRawCalls.end(), RawCall::kTranslated) ==
                  std::ssize(kTranslatedCalls),
              "no number is twice in the group, or in another one");
static_assert(std::count(kRawCalls.begin(), kRawCalls.end(), RawCall::kPrepared) ==
              std::ssize(kPreparedCalls));
static_assert(std::count(kRawCalls.begin(), kRawCalls.end(), RawCall::kRefused) ==
              std::ssize(kRefusedCalls));

inline RawCall treatment_of(long number) {
  const auto index = static_cast<unsigned long>(number);
  return index < kRawCallsMax ? kRawCalls[index] : RawCall::kNeedsNothing;
}

}  // namespace cairn
