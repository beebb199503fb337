/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A predictor in a shared object: it sees the reads of a program in a file, and says which come
 * next. The interface between it and the node service. Plain C.
 *
 * The object exports one function, cairn_predictor_v1(), which returns a description that lives as
 * long as the object is loaded. For each stream (what one process reads through one open
 * description) the service makes a state with create(), when something of it was not in RAM. From
 * then on it calls observe() for each read, in order, and predict() now and then. It compares the
 * forecasts with the reads, as with the predictors that are built in: a predictor that is right
 * less often than two times in five has nothing fetched, and of several the service follows the
 * best.
 *
 * Nobody waits for a predictor: the service uses its forecast when the program has read on. So it
 * calls predict() for many reads at once, and again before they are used up, or when the program
 * has read something else; after the first 16 reads of a stream no more than after every fourth,
 * and for a stream about which the predictor is wrong or silent, down to every 64th. Until then the
 * service gathers reads, at most 64 of them. Some may be missing, since programs report them
 * through a ring that forgets when it is full. A read of blocks in RAM may not be reported, and
 * neither is a second read of the same blocks in a row.
 *
 * Errors: the service does not call a predictor again that throws or does not return within 500
 * ms, and its log says so. It leaves out forecast runs that are no blocks of the file, and an
 * answer that counts more runs than there is room for; the log says so once. A crash is a crash of
 * the service.
 *
 * Thread safety: all functions are called by one thread of the service at a time, which is not
 * always the same. Ownership: a state belongs to the predictor, and the service gives it back with
 * destroy() when the stream has ended; not when it has stopped calling the predictor. Everything
 * else that is passed in belongs to the caller and is valid during the call. Versions: a change of
 * any structure is a new CAIRN_PREDICTOR_ABI_VERSION and a new name of the function.
 *
 * An example: examples/predictor_plugin/.
 */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CAIRN_PREDICTOR_ABI_VERSION 1u
/* The service requests so many reads at once. */
#define CAIRN_PREDICTOR_RUNS_MAX 256u

/* The names are those of a C interface. NOLINTBEGIN(readability-identifier-naming) */
/* Blocks that one call reads, in whole or in part: first, first + 1, ... of the file, from 0. */
struct cairn_block_run {
  int64_t first;
  uint32_t count; /* at least 1 */
  uint32_t unused;
};

struct cairn_read_stream {
  uint64_t file_blocks; /* of the file as it is now; the last may be a short one */
  uint32_t block_bytes; /* 65536 */
  uint32_t unused;
};

struct cairn_predictor {
  uint32_t abi_version; /* CAIRN_PREDICTOR_ABI_VERSION */
  uint32_t unused;
  const char* name; /* letters, digits and dashes, at most 63; not that of a built-in predictor */
  /* The state of a new stream; null when the predictor has nothing to say about streams of such a
   * file: the service then leaves this one to others. */
  void* (*create)(const struct cairn_read_stream* stream);
  void (*destroy)(void* state);
  /* The program has read these blocks. */
  void (*observe)(void* state, const struct cairn_block_run* read);
  /* Fills `next` with the reads that it expects after the last one observed, in order, at most
   * `max` of them. Returns how many it has filled: fewer when it knows no more, 0 when it knows
   * nothing. The entries come zeroed. */
  uint32_t (*predict)(void* state, const struct cairn_read_stream* stream,
                      struct cairn_block_run* next, uint32_t max);
};

/* The function that the shared object defines. */
#define CAIRN_PREDICTOR_ENTRY_POINT "cairn_predictor_v1"
__attribute__((visibility("default"))) const struct cairn_predictor* cairn_predictor_v1(void);
/* NOLINTEND(readability-identifier-naming) */

#ifdef __cplusplus
}
#endif
