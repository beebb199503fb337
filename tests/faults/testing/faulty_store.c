// SPDX-License-Identifier: Apache-2.0
// A file system that shows a directory of another one, and misbehaves by rules.
//
//   faulty_store RULES DIRECTORY MOUNT_POINT       (in the foreground; ends with the mount)
//
// The file RULES is read at each operation. A line "OPERATION WHAT [NAME [BEGIN END]]" concerns one
// of the operations below, or "any", of all files ("*") or of those whose name ends in NAME; with
// BEGIN and END, those reads and writes alone that touch bytes of that range. WHAT is
//
//   a number   the operation fails with that error
//   hang       it does not return for as long as the rule stands
//   slow       it takes 300 ms
//   short      half of what is to be written is
//   stale      a file that was opened before RULES was written answers ESTALE, as after the restart
//              of a server
//   lost       an fsync answers EIO, and the file turns to zeros: the device has not kept it
//
// Nothing is cached by the kernel, so that each call of a program arrives here. FUSE tells no birth
// times, no leases and no file handles: to a program it is like a network file system.
#define FUSE_USE_VERSION 31
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

static const char* rules_path;
static const char* root;

enum what { kNothing = 0, kHang = -1, kShort = -2, kStale = -3, kSlow = -4, kLost = -5 };

// An open file, in fuse_file_info.fh.
struct open_file {
  int fd;
  struct timespec opened;
};

static struct open_file* file_of(const struct fuse_file_info* info) {
  return (struct open_file*)(uintptr_t)info->fh;
}

static int fd_of(const struct fuse_file_info* info) { return file_of(info)->fd; }

static int is_older_than_rules(const struct open_file* file) {
  struct stat rules;
  if (file == NULL || stat(rules_path, &rules) != 0) return 0;
  return file->opened.tv_sec < rules.st_mtim.tv_sec ||
         (file->opened.tv_sec == rules.st_mtim.tv_sec &&
          file->opened.tv_nsec < rules.st_mtim.tv_nsec);
}

static int ends_with(const char* text, const char* end) {
  const size_t length = strlen(text);
  const size_t tail = strlen(end);
  return length >= tail && strcmp(text + length - tail, end) == 0;
}

// The bytes that an operation touches; of one that touches none, nothing.
struct range {
  long long begin;
  long long end;
};
static const struct range kNoBytes = {0, 0};

// The number of an error, or a `what`.
static int find_rule(const char* operation, const char* path, struct range bytes) {
  FILE* rules = fopen(rules_path, "re");
  if (rules == NULL) return kNothing;
  char line[512];
  int found = kNothing;
  while (found == kNothing && fgets(line, sizeof line, rules) != NULL) {
    char which[64];
    char what[64];
    char name[256] = "";
    struct range rule = {0, 0};
    if (sscanf(line, "%63s %63s %255s %lld %lld", which, what, name, &rule.begin, &rule.end) < 2)
      continue;
    const int touches = bytes.begin < rule.end && rule.begin < bytes.end;
    if (rule.end != 0 && !touches) continue;
    if (strcmp(which, operation) != 0 && strcmp(which, "any") != 0) continue;
    if (name[0] != '\0' && strcmp(name, "*") != 0 && !ends_with(path, name)) continue;
    if (strcmp(what, "hang") == 0)
      found = kHang;
    else if (strcmp(what, "slow") == 0)
      found = kSlow;
    else if (strcmp(what, "short") == 0)
      found = kShort;
    else if (strcmp(what, "lost") == 0)
      found = kLost;
    else if (strcmp(what, "stale") == 0)
      found = kStale;
    else
      found = (int)strtol(what, NULL, 10);
  }
  fclose(rules);
  return found;
}

static int lose(const struct open_file* file) {
  char name[40];  // of the file, which may be open for reading only
  snprintf(name, sizeof name, "/proc/self/fd/%d", file->fd);
  struct stat status;
  int is_emptied = fstat(file->fd, &status) == 0 && truncate(name, 0) == 0 &&
                   truncate(name, status.st_size) == 0;
  // Nobody has changed it.
  const struct timespec times[2] = {status.st_atim, status.st_mtim};
  is_emptied = is_emptied && utimensat(AT_FDCWD, name, times, 0) == 0;
  return is_emptied ? -EIO : -errno;
}

// 0 or -errno; `*is_short` is set where half is enough. `file` may be null.
static int misbehave(const char* operation, const char* path, const struct open_file* file,
                     struct range bytes, int* is_short) {
  for (;;) {
    const int rule = find_rule(operation, path != NULL ? path : "", bytes);
    if (rule == kStale) return is_older_than_rules(file) ? -ESTALE : 0;
    if (rule == kShort && is_short != NULL) *is_short = 1;
    if (rule == kShort) return 0;
    if (rule == kLost) return file != NULL ? lose(file) : 0;
    if (rule == kSlow) {
      const struct timespec pause = {.tv_sec = 0, .tv_nsec = 300L * 1000 * 1000};
      nanosleep(&pause, NULL);
      return 0;
    }
    if (rule != kHang) return -rule;
    const struct timespec pause = {.tv_sec = 0, .tv_nsec = 20L * 1000 * 1000};
    nanosleep(&pause, NULL);
  }
}

#define MISBEHAVE(operation, path, info)                                                   \
  do {                                                                                     \
    const int fault =                                                                      \
        misbehave(operation, path, (info) != NULL ? file_of(info) : NULL, kNoBytes, NULL); \
    if (fault < 0) return fault;                                                           \
  } while (0)
#define NO_FILE ((const struct fuse_file_info*)NULL)

// The file below the other directory, in a buffer of the calling thread that is good for two names.
static const char* real(const char* path) {
  static _Thread_local char buffers[2][PATH_MAX];
  static _Thread_local int turn;
  turn = 1 - turn;
  snprintf(buffers[turn], sizeof buffers[turn], "%s%s", root, path);
  return buffers[turn];
}

static int result_of(int returned) { return returned < 0 ? -errno : 0; }

static int do_getattr(const char* path, struct stat* out, struct fuse_file_info* file) {
  MISBEHAVE("getattr", path, file);
  return result_of(file != NULL ? fstat(fd_of(file), out) : lstat(real(path), out));
}

static int do_readlink(const char* path, char* out, size_t size) {
  const ssize_t length = readlink(real(path), out, size - 1);
  if (length < 0) return -errno;
  out[length] = '\0';
  return 0;
}

static int do_mkdir(const char* path, mode_t mode) { return result_of(mkdir(real(path), mode)); }
static int do_rmdir(const char* path) { return result_of(rmdir(real(path))); }

static int do_unlink(const char* path) {
  MISBEHAVE("unlink", path, NO_FILE);
  return result_of(unlink(real(path)));
}

static int do_symlink(const char* target, const char* path) {
  return result_of(symlink(target, real(path)));
}

static int do_rename(const char* from, const char* to, unsigned flags) {
  MISBEHAVE("rename", from, NO_FILE);
  const char* old = real(from);
  return result_of(renameat2(AT_FDCWD, old, AT_FDCWD, real(to), flags));
}

static int do_link(const char* from, const char* to) {
  const char* old = real(from);
  return result_of(link(old, real(to)));
}

static int do_chmod(const char* path, mode_t mode, struct fuse_file_info* file) {
  return result_of(file != NULL ? fchmod(fd_of(file), mode) : chmod(real(path), mode));
}

static int do_chown(const char* path, uid_t user, gid_t group, struct fuse_file_info* file) {
  return result_of(file != NULL ? fchown(fd_of(file), user, group)
                                : lchown(real(path), user, group));
}

static int do_truncate(const char* path, off_t size, struct fuse_file_info* file) {
  MISBEHAVE("truncate", path, file);
  return result_of(file != NULL ? ftruncate(fd_of(file), size) : truncate(real(path), size));
}

static int do_utimens(const char* path, const struct timespec times[2],
                      struct fuse_file_info* file) {
  MISBEHAVE("utimens", path, file);
  return result_of(file != NULL ? futimens(fd_of(file), times)
                                : utimensat(AT_FDCWD, real(path), times, AT_SYMLINK_NOFOLLOW));
}

static int open_real(const char* path, struct fuse_file_info* file, mode_t mode) {
  // Where the caller's pages go without a copy of the kernel's, ours have no alignment.
  const int fd = open(real(path), (file->flags & ~(O_APPEND | O_DIRECT)) | O_CLOEXEC, mode);
  if (fd < 0) return -errno;
  struct open_file* opened = malloc(sizeof *opened);
  if (opened == NULL) abort();
  opened->fd = fd;
  clock_gettime(CLOCK_REALTIME, &opened->opened);
  file->fh = (uint64_t)(uintptr_t)opened;
  return 0;
}

static int do_open(const char* path, struct fuse_file_info* file) {
  MISBEHAVE("open", path, NO_FILE);
  return open_real(path, file, 0);
}

static int do_create(const char* path, mode_t mode, struct fuse_file_info* file) {
  MISBEHAVE("create", path, NO_FILE);
  return open_real(path, file, mode);
}

static int do_read(const char* path, char* out, size_t size, off_t offset,
                   struct fuse_file_info* file) {
  const struct range bytes = {offset, offset + (long long)size};
  const int fault = misbehave("read", path, file_of(file), bytes, NULL);
  if (fault < 0) return fault;
  const ssize_t count = pread(fd_of(file), out, size, offset);
  return count < 0 ? -errno : (int)count;
}

static int do_write(const char* path, const char* data, size_t size, off_t offset,
                    struct fuse_file_info* file) {
  int is_short = 0;
  const struct range bytes = {offset, offset + (long long)size};
  const int fault = misbehave("write", path, file_of(file), bytes, &is_short);
  if (fault < 0) return fault;
  if (is_short && size > 1) size /= 2;
  const ssize_t count = pwrite(fd_of(file), data, size, offset);
  return count < 0 ? -errno : (int)count;
}

static int do_statfs(const char* path, struct statvfs* out) {
  return result_of(statvfs(real(path), out));
}

static int do_release(const char* path, struct fuse_file_info* file) {
  (void)path;
  close(fd_of(file));
  free(file_of(file));
  return 0;
}

static int do_fsync(const char* path, int data_only, struct fuse_file_info* file) {
  MISBEHAVE("fsync", path, file);
  return result_of(data_only ? fdatasync(fd_of(file)) : fsync(fd_of(file)));
}

static int do_fallocate(const char* path, int mode, off_t offset, off_t length,
                        struct fuse_file_info* file) {
  MISBEHAVE("fallocate", path, file);
  return result_of(fallocate(fd_of(file), mode, offset, length));
}

static off_t do_lseek(const char* path, off_t offset, int whence, struct fuse_file_info* file) {
  (void)path;
  const off_t at = lseek(fd_of(file), offset, whence);
  return at < 0 ? -errno : at;
}

static int do_readdir(const char* path, void* out, fuse_fill_dir_t fill, off_t offset,
                      struct fuse_file_info* file, enum fuse_readdir_flags flags) {
  (void)offset, (void)file, (void)flags;
  DIR* directory = opendir(real(path));
  if (directory == NULL) return -errno;
  for (struct dirent* entry; (entry = readdir(directory)) != NULL;) {
    const struct stat status = {.st_ino = entry->d_ino, .st_mode = (mode_t)entry->d_type << 12};
    if (fill(out, entry->d_name, &status, 0, 0) != 0) break;
  }
  closedir(directory);
  return 0;
}

static void* do_init(struct fuse_conn_info* connection, struct fuse_config* config) {
  (void)connection;
  config->use_ino = 1;
  config->nullpath_ok = 0;
  config->hard_remove = 0;
  config->entry_timeout = 0;
  config->attr_timeout = 0;
  config->negative_timeout = 0;
  return NULL;
}

static const struct fuse_operations operations = {
    .init = do_init,
    .getattr = do_getattr,
    .readlink = do_readlink,
    .mkdir = do_mkdir,
    .rmdir = do_rmdir,
    .unlink = do_unlink,
    .symlink = do_symlink,
    .rename = do_rename,
    .link = do_link,
    .chmod = do_chmod,
    .chown = do_chown,
    .truncate = do_truncate,
    .utimens = do_utimens,
    .open = do_open,
    .create = do_create,
    .read = do_read,
    .write = do_write,
    .statfs = do_statfs,
    .release = do_release,
    .fsync = do_fsync,
    .fallocate = do_fallocate,
    .lseek = do_lseek,
    .readdir = do_readdir,
};

int main(int count, char** arguments) {
  if (count != 4) {
    fprintf(stderr, "usage: %s RULES DIRECTORY MOUNT_POINT\n", arguments[0]);
    return 2;
  }
  rules_path = arguments[1];
  root = arguments[2];
  umask(0);
  char* fuse_arguments[] = {arguments[0], "-f",
                            "-o",         "default_permissions,allow_other,max_threads=64",
                            arguments[3], NULL};
  return fuse_main(5, fuse_arguments, &operations, NULL);
}
