/* SPDX-License-Identifier: Apache-2.0 */
/* A node for a program that runs without LD_PRELOAD. A plugin loads libcairn_preload.so with
 * dlopen(RTLD_LOCAL), has it join a node, and calls the functions that it exports under libc's
 * names (open, pread, close, ...), which dlsym() finds in it. What the program itself does goes to
 * the kernel as before. C, and without a header of Cairn's.
 *
 * The plugin has to keep signal handlers out during each of its calls, because the library cannot
 * stand before sigaction() any more: a handler that never returns would keep the locks of its
 * thread.
 *
 * Results are 0 or -errno, errno is left alone. Thread safety: any thread; not in signal handlers.
 */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* Has the process join the node with that client socket, where it belongs to none yet. Unless
 * CAIRN_BUFFER says otherwise, all regular files that the plugin opens are buffered. -ENAMETOOLONG:
 * no socket has such a path. */
int cairn_join_node(const char* client_socket);

/* Returns when the backing store has all that was written to the file, so that programs that do not
 * know the node read it. 0 also for a descriptor that is not buffered. -EIO, -ENOSPC, ...: what the
 * store has answered. */
int cairn_store_file(int descriptor);

#ifdef __cplusplus
}
#endif
