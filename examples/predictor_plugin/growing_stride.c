/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An example of a predictor in a shared object: reads whose distance grows by the same number of
 * blocks each time, and that wrap around at the end of the file. A program reads the diagonal of a
 * packed triangular matrix so (distances of 1, 2, 3, ... rows), and a hash table that probes by
 * triangular numbers looks for a free place so. No distance ever comes twice, so the built-in
 * predictors, which learn distances and their order, have nothing to say.
 *
 * Thread safety: one thread at a time, as the interface promises.
 */
#include <stdlib.h>

#include "cairn/predictor_plugin.h"

struct stream_state {
  int64_t file_blocks;
  struct cairn_block_run last;
  int64_t distance; /* of the last two reads, in [0, file_blocks) */
  int64_t growth;
  unsigned reads;
  unsigned agreeing; /* in a row, whose distance grew by `growth` */
};

/* In [0, blocks). */
static int64_t wrapped(int64_t number, int64_t blocks) {
  int64_t rest = number % blocks;
  return rest < 0 ? rest + blocks : rest;
}

static void* create(const struct cairn_read_stream* stream) {
  struct stream_state* state = calloc(1, sizeof *state);
  if (state != NULL) state->file_blocks = (int64_t)stream->file_blocks;
  return state;
}

static void destroy(void* state) { free(state); }

static void observe(void* stream, const struct cairn_block_run* read) {
  struct stream_state* state = stream;
  if (state->file_blocks <= 0) return;
  if (state->reads > 0) {
    int64_t distance = wrapped(read->first - state->last.first, state->file_blocks);
    int64_t growth = wrapped(distance - state->distance, state->file_blocks);
    int agrees = state->reads > 2 && growth == state->growth;
    state->agreeing = agrees ? state->agreeing + 1 : 0;
    state->distance = distance;
    state->growth = growth;
  }
  state->last = *read;
  ++state->reads;
}

static uint32_t predict(void* stream, const struct cairn_read_stream* now,
                        struct cairn_block_run* next, uint32_t max) {
  struct stream_state* state = stream;
  /* Another length, another order. */
  if ((int64_t)now->file_blocks != state->file_blocks) {
    state->file_blocks = (int64_t)now->file_blocks;
    state->reads = 0;
    state->agreeing = 0;
  }
  /* Equal distances are the business of others. */
  if (state->agreeing == 0 || state->growth == 0) return 0;
  int64_t block = state->last.first;
  int64_t distance = state->distance;
  for (uint32_t at = 0; at < max; ++at) {
    distance = wrapped(distance + state->growth, state->file_blocks);
    block = wrapped(block + distance, state->file_blocks);
    next[at].first = block;
    next[at].count = state->last.count;
  }
  return max;
}

const struct cairn_predictor* cairn_predictor_v1(void) {
  static const struct cairn_predictor predictor = {
      CAIRN_PREDICTOR_ABI_VERSION, 0, "growing-stride", create, destroy, observe, predict};
  return &predictor;
}
