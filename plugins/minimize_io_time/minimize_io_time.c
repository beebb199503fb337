/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The placement policy "minimize-io-time": a linear programme over the tiers for a whole request,
 * as the first versions of Hermes had it, solved by GLPK.
 *
 *   minimise    sum_i t_i x_i          t_i = A_i + b / BW_i, the time of one block of b bytes
 *   subject to  sum_i x_i = s / b      all blocks of the request, i over the tiers and the store
 *               0 <= x_i <= C_i / b    the room; the store's is unlimited
 *
 * Each block is an access of its own here, where max-bandwidth counts one access per tier: a linear
 * programme has no terms that are paid once. With one equation and whole bounds the optimum that
 * the simplex method finds is a vertex, whose components are whole numbers of blocks. A store of
 * unknown speed counts four times the slowest tier. Nothing is moved to make room.
 *
 * Thread safety: GLPK keeps its state per thread; the service calls from one at a time.
 * Errors: what GLPK would abort the process for is reported as a failure.
 */
#include <glpk.h>
#include <math.h>
#include <setjmp.h>

#include "cairn/policy_plugin.h"

enum { kBlockBytes = 64 * 1024, kColumnsMax = CAIRN_POLICY_TIERS_MAX + 1 };

/* The programme. Columns are counted from 1, as GLPK does; the last is the store. */
struct programme {
  uint64_t block_bytes;
  uint64_t blocks;
  int columns;
  uint32_t tier[kColumnsMax + 1];
  double room[kColumnsMax + 1];
  double seconds[kColumnsMax + 1];
  double solution[kColumnsMax + 1];
};

static double seconds_of_block(double bandwidth, double latency, uint64_t bytes) {
  const double access = latency > 0 && isfinite(latency) ? latency : 0;
  const double transfer = (double)bytes / bandwidth;
  return access + (bandwidth > 0 && isfinite(transfer) ? transfer : (double)bytes);
}

static void state(struct programme* programme, const struct cairn_tier_view* tiers,
                  uint32_t tier_count, const struct cairn_placement_request* request) {
  const uint64_t block = request->bytes < kBlockBytes ? request->bytes : kBlockBytes;
  double slowest = 0;
  int column = 0;
  programme->block_bytes = block;
  programme->blocks = (request->bytes - 1) / block + 1;
  for (uint32_t at = 0; at < tier_count && column < (int)CAIRN_POLICY_TIERS_MAX; ++at) {
    const struct cairn_tier_view* tier = &tiers[at];
    if (tier->id < request->fastest) continue;
    const uint64_t room =
        tier->free_bytes > tier->reserve_bytes ? tier->free_bytes - tier->reserve_bytes : 0;
    ++column;
    programme->tier[column] = tier->id;
    programme->room[column] = (double)(room / block);
    programme->seconds[column] = seconds_of_block(tier->bandwidth, tier->latency, block);
    slowest = fmax(slowest, programme->seconds[column]);
  }
  programme->columns = ++column;
  programme->seconds[column] =
      request->store_bandwidth > 0
          ? seconds_of_block(request->store_bandwidth, request->store_latency, block)
          : 4 * slowest;
  programme->room[column] = (double)programme->blocks;
}

/* The objective is scaled to at most 1, because the solver's tolerances are absolute. */
static double scale_of(const struct programme* programme) {
  double dearest = 0;
  for (int column = 1; column <= programme->columns; ++column) {
    dearest = fmax(dearest, programme->seconds[column]);
  }
  return dearest > 0 ? 1 / dearest : 1;
}

static void load(glp_prob* problem, const struct programme* programme) {
  int rows[kColumnsMax + 1];
  int columns[kColumnsMax + 1];
  double ones[kColumnsMax + 1];
  const double scale = scale_of(programme);
  glp_set_obj_dir(problem, GLP_MIN);
  glp_add_rows(problem, 1);
  glp_set_row_bnds(problem, 1, GLP_FX, (double)programme->blocks, (double)programme->blocks);
  glp_add_cols(problem, programme->columns);
  for (int column = 1; column <= programme->columns; ++column) {
    const double room = programme->room[column];
    glp_set_col_bnds(problem, column, room > 0 ? GLP_DB : GLP_FX, 0, room);
    glp_set_obj_coef(problem, column, programme->seconds[column] * scale);
    rows[column] = 1;
    columns[column] = column;
    ones[column] = 1;
  }
  glp_load_matrix(problem, programme->columns, rows, columns, ones);
}

static int optimise(struct programme* programme) {
  glp_smcp parameters;
  glp_prob* problem = glp_create_prob();
  load(problem, programme);
  glp_init_smcp(&parameters);
  parameters.msg_lev = GLP_MSG_OFF;
  parameters.tol_dj = 1e-12;
  const int failure = glp_simplex(problem, &parameters);
  const int status = glp_get_status(problem);
  for (int column = 1; column <= programme->columns; ++column) {
    programme->solution[column] = glp_get_col_prim(problem, column);
  }
  glp_delete_prob(problem);
  if (failure != 0) return failure;
  return status == GLP_OPT ? 0 : -1;
}

static void leave(void* target) { longjmp(*(jmp_buf*)target, 1); }

static int optimise_guarded(struct programme* programme) {
  jmp_buf target;
  if (setjmp(target) != 0) {
    /* Releases all that GLPK had allocated, and with it the hook. */
    glp_free_env();
    return -2;
  }
  glp_term_out(GLP_OFF);
  glp_error_hook(leave, &target);
  const int failure = optimise(programme);
  glp_error_hook(NULL, NULL);
  return failure;
}

static void answer_with(const struct programme* programme, uint64_t bytes,
                        struct cairn_placement* answer) {
  uint64_t left = bytes;
  for (int column = 1; column <= programme->columns; ++column) {
    const double blocks = fmin(round(programme->solution[column]), programme->room[column]);
    answer->seconds += blocks * programme->seconds[column];
    if (column == programme->columns || blocks < 1) continue;
    uint64_t here = (uint64_t)blocks * programme->block_bytes;
    /* The last block may be a short one. */
    if (here > left) here = left;
    if (here == 0) continue;
    struct cairn_placement_step* step = &answer->steps[answer->count++];
    step->kind = CAIRN_PLACEMENT_PLACE;
    step->tier = programme->tier[column];
    step->bytes = here;
    left -= here;
  }
}

static int solve(const struct cairn_tier_view* tiers, uint32_t tier_count,
                 const struct cairn_placement_request* request, struct cairn_placement* answer) {
  struct programme programme;
  if (request->bytes == 0) return 0;
  state(&programme, tiers, tier_count, request);
  const int failure = optimise_guarded(&programme);
  if (failure == 0) answer_with(&programme, request->bytes, answer);
  return failure;
}

const struct cairn_placement_policy* cairn_placement_policy_v1(void) {
  static const struct cairn_placement_policy policy = {CAIRN_POLICY_ABI_VERSION, CAIRN_PLAN_WINDOW,
                                                       "minimize-io-time", solve};
  return &policy;
}
