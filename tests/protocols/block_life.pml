/* SPDX-License-Identifier: Apache-2.0
 *
 * The life of one block between two buckets, for spin: the states of memory/catalog/block_state.h, the steps of
 * memory/catalog/block_life.h, the lock that is taken over from the dead (memory/catalog/block.cc, owner.h), the
 * search of memory/catalog/hash_lines.h and the sweep of service/attachment/sweep.cc, under their names. Processes are
 * killed between any two of their steps.
 *
 *   who          owner       does
 *   Writer       kWriter     places the block, fills it or not, writes it
 *   Flusher      kService    the service's flusher
 *   Mover        kService    moves the block to the other bucket, or drops it when it is clean
 *   Syncer       kClient     a client's fsync: waits for the other flusher
 *   Finder       nobody      searches the block and reads it without a lock
 *   Reaper       kSuccessor  declares the dead dead, sweeps, and looks at what is left when all have ended
 *
 * What is proved (each is an assertion below; -DWITHOUT_... takes one guard away, and run.py shows that spin then
 * finds a run that breaks one of them):
 *   1. dirty is never lost: what was written is in the store, or in the block, dirty and in the flusher's map
 *   2. no two flushers own the block
 *   3. a search that says "not there" is right at some moment of it
 *   4. what is clean is what the store has; a read without a lock sees all that was written before it
 *   5. locks of the dead are taken over; nothing waits for ever (spin's invalid end states)
 *   6. each change of a state stands in the table
 *
 * The table is memory/catalog/block_state.h's; run.py compares the two.
 */

#define kFree 0
#define kFilling 1
#define kClean 2
#define kDirty 3
#define kFlushing 4

#define TO(state) (1 << (state))
#define kFreeTurns     (TO(kFilling))
#define kFillingTurns  (TO(kFree) | TO(kClean) | TO(kDirty))
#define kCleanTurns    (TO(kFree) | TO(kClean) | TO(kDirty))
#define kDirtyTurns    (TO(kFree) | TO(kClean) | TO(kDirty) | TO(kFlushing))
#define kFlushingTurns (TO(kClean) | TO(kDirty) | TO(kFlushing))
#define turns_of(from) \
  ((from) == kFree -> kFreeTurns : ((from) == kFilling -> kFillingTurns : ((from) == kClean -> kCleanTurns : \
  ((from) == kDirty -> kDirtyTurns : kFlushingTurns))))
#define is_legal_transition(from, to) (((turns_of(from) >> (to)) & 1) == 1)
#define counts_as_dirty(state) ((state) == kDirty || (state) == kFlushing)

#define kNobody 0
#define kWriter 1
#define kService 2
#define kClient 3
#define kSuccessor 4

#ifndef WRITES
#define WRITES 2
#endif
#ifndef DEATHS
#define DEATHS 1
#endif

/* Buckets are 1 and 2. */
byte lock_owner[3];
byte sequence[3];
bool holds[3];     /* the identity is the block's */
bool valid[3];     /* one page */
bool dirty[3];
byte state[3];
byte claimant[3];
byte bytes[3];     /* the number of the write that they are of */
bool marked[3];    /* in the flusher's map */
bool taken[3];     /* in the pool's eyes */

byte directory;    /* the slot: a bucket, or 0 */
byte arrivals;

byte store;        /* the number of the write that the store has */
byte written;      /* of the last write that has returned */

bool dies[5];      /* to be killed at its next step */
bool is_alive[5];  /* by its generation: declared dead after its death */
byte at_work[5];   /* processes of the owner */
byte flushing_for; /* the owner whose device reads the block now */
bool was_absent;   /* since the search began */

inline set_state(b, next) {
  d_step {
    assert(is_legal_transition(state[b], next));
    state[b] = next
  }
}

/* BlockDescriptor::lock(), repair_after_steal(), BlockLock::settle_stolen() */
inline lock_block(self, b) {
  if
  :: d_step { lock_owner[b] == kNobody -> lock_owner[b] = self }
#ifndef WITHOUT_TAKEOVER
  :: d_step { lock_owner[b] != kNobody && !is_alive[lock_owner[b]] ->
       lock_owner[b] = self;
       sequence[b]++
     };
     dirty[b] = dirty[b] && valid[b];
     if
     :: d_step { state[b] != kFree && !(state[b] == kFlushing && dirty[b]) ->
          state[b] = (dirty[b] -> kDirty : kClean) }
     :: else
     fi;
     if
     :: holds[b] ->
        arrivals++;
        if
#ifndef WITHOUT_LOOK_AFTER_STEAL
        :: directory != b ->
           holds[b] = false;
           dirty[b] = false;
           valid[b] = false
#endif
        :: else ->
#ifndef WITHOUT_MARK_AFTER_STEAL
           if
           :: dirty[b] -> marked[b] = true
           :: else
           fi
#else
           skip
#endif
        fi
     :: else
     fi
#endif
  fi
}

inline unlock_block(self, b, changed) {
  d_step {
    assert(lock_owner[b] == self);
    assert(!(holds[b] && directory == b && valid[b] && !dirty[b]) || bytes[b] == store);
    assert(!dirty[b] || valid[b]);
    lock_owner[b] = kNobody;
    sequence[b] = sequence[b] + changed
  }
}

/* BlockLock::empty() */
inline empty_bucket(b) {
  dirty[b] = false;
  valid[b] = false;
  if
  :: state[b] == kFlushing -> set_state(b, kDirty)
  :: else
  fi;
  if
  :: state[b] != kFree -> set_state(b, kFree)
  :: else
  fi;
  holds[b] = false
}

/* FreshBlock::describe() */
inline describe(b) {
  assert(state[b] == kFree);
  holds[b] = true;
  claimant[b] = kNobody;
  d_step { valid[b] = false; dirty[b] = false };
  set_state(b, kFilling)
}

/* A bucket of the pool, locked; 0: there is none. */
inline take_fresh(self, b) {
  b = 0;
  if
  :: !taken[1] -> b = 1
  :: !taken[2] -> b = 2
  :: taken[1] && taken[2]
  fi;
  if
  :: b != 0 ->
     lock_block(self, b);
     if
     :: d_step { !taken[b] && !holds[b] && state[b] == kFree -> taken[b] = true }
     :: else -> unlock_block(self, b, 0); b = 0
     fi
  :: else
  fi
}

/* LockedBlock::lock_place(); 0: the block is there no more. */
inline lock_place(self, b) {
  lock_block(self, b);
  if
  :: holds[b]
  :: else -> unlock_block(self, b, 0); b = 0
  fi
}

/* WritableBlock */
inline write_block(b, version) {
  if
  :: !counts_as_dirty(state[b]) ->
#ifndef WITHOUT_MARK_OF_WRITE
     marked[b] = true;
#endif
     set_state(b, kDirty)
  :: else
  fi;
  dirty[b] = dirty[b] || valid[b];
  bytes[b] = version;
#ifdef VALID_BEFORE_DIRTY
  valid[b] = true;
  dirty[b] = true
#else
  dirty[b] = true;
  valid[b] = true
#endif
}

proctype Writer() {
  byte b;
  byte version;
  {
    version = written;
    do
    :: version < WRITES ->
       b = directory;
       if
       :: b != 0 -> lock_place(kWriter, b)
       :: else ->
          take_fresh(kWriter, b);
          if
          :: b != 0 ->
             describe(b);
             if
             :: d_step { directory == 0 -> directory = b };
                arrivals++;
                if
                :: assert(store >= written);
                   bytes[b] = store;
                   valid[b] = true;
                   set_state(b, kClean)
                :: skip
                fi
             :: else ->
                empty_bucket(b);
                taken[b] = false;
                unlock_block(kWriter, b, 1);
                b = 0
             fi
          :: else
          fi
       fi;
       if
       :: b != 0 ->
          write_block(b, version + 1);
          d_step { version++; written = version };
          unlock_block(kWriter, b, 1)
       :: else
       fi
    :: else -> break
    od
  } unless { dies[kWriter] };
  at_work[kWriter]--
}

/* lock_unless_clean(), claim_locked(), write_batch(), ClaimedBlock::end_flush() */
inline flush_block(self, waits, b, seen, staged) {
  do
  :: b = directory;
     if
     :: b == 0 -> break
     :: else
     fi;
     /* is_clean_place_of() */
     if
     :: d_step { lock_owner[b] == kNobody -> seen = sequence[b] };
        if
        :: holds[b] && !dirty[b] ->
           if
           :: lock_owner[b] == kNobody && sequence[b] == seen -> b = 0; break
           :: else
           fi
        :: else
        fi
     :: lock_owner[b] != kNobody
     fi;
     lock_place(self, b);
     if
     :: b == 0
     :: b != 0 && !dirty[b] -> unlock_block(self, b, 0); b = 0; break
#ifndef WITHOUT_LOOK_AT_CLAIM
     :: b != 0 && dirty[b] && claimant[b] != kNobody && is_alive[claimant[b]] ->
        unlock_block(self, b, 0);
        if
        :: waits -> (claimant[b] == kNobody || !is_alive[claimant[b]])
        :: !waits -> b = 0; break
        fi
     :: b != 0 && dirty[b] && !(claimant[b] != kNobody && is_alive[claimant[b]]) ->
#else
     :: b != 0 && dirty[b] ->
#endif
        break
     fi
  od;
  if
  :: b != 0 ->
     claimant[b] = self;
     set_state(b, kFlushing);
     seen = sequence[b];
     d_step {
       assert(flushing_for == kNobody || !is_alive[flushing_for]);
       flushing_for = self
     };
     unlock_block(self, b, 0);
     staged = bytes[b];
     store = staged;
     lock_block(self, b);
     assert(claimant[b] == self);
#ifndef WITHOUT_SEQUENCE
     dirty[b] = dirty[b] && sequence[b] != seen;
#else
     dirty[b] = false;
#endif
     if
     :: !dirty[b] -> set_state(b, kClean); marked[b] = false
     :: else -> set_state(b, kDirty)
     fi;
     d_step { flushing_for = kNobody; claimant[b] = kNobody };
     unlock_block(self, b, 0)
  :: else
  fi
}

proctype Flusher() {
  byte b, seen, staged;
  {
    flush_block(kService, false, b, seen, staged)
  } unless { dies[kService] };
  at_work[kService]--
}

proctype Syncer() {
  byte b, seen, staged;
  byte promised;
  {
    promised = written;
    flush_block(kClient, true, b, seen, staged);
    /* A write that has come meanwhile makes it pass once more (flush_object.cc); one pass promises what was there. */
    assert(b == 0 || staged >= promised)
  } unless { dies[kClient] };
  at_work[kClient]--
}

/* UnclaimedBlock::relocate(), UnclaimedBlock::vacate() */
proctype Mover() {
  byte b, to, seen, copied;
  {
    b = directory;
    if
    :: b != 0 -> lock_place(kService, b)
    :: else
    fi;
    if
    :: b != 0 && (state[b] == kFilling || (claimant[b] != kNobody && is_alive[claimant[b]])) ->
#ifndef WITHOUT_LOOK_AT_HOLDERS
       unlock_block(kService, b, 0);
       b = 0
#else
       skip
#endif
    :: else
    fi;
    if
    :: b != 0 && !dirty[b] ->
       /* vacate() */
       assert(store >= written);
       d_step { directory = 0; was_absent = true };
       empty_bucket(b);
       taken[b] = false;
       unlock_block(kService, b, 1)
    :: b != 0 ->
       /* begin_move() */
       claimant[b] = kService;
       seen = sequence[b];
       unlock_block(kService, b, 0);
       take_fresh(kService, to);
       copied = bytes[b];
       lock_block(kService, b);
       claimant[b] = kNobody;
       if
       :: to != 0 && sequence[b] == seen && holds[b] ->
          bytes[to] = copied;
          describe(to);
          d_step { valid[to] = valid[b]; dirty[to] = dirty[b] };
          set_state(to, (counts_as_dirty(state[b]) -> kDirty : kClean));
          if
          :: dirty[to] ->
#ifndef WITHOUT_MARK_OF_MOVE
             marked[to] = true;
#endif
             marked[b] = false
          :: else
          fi;
          directory = to;
#ifndef WITHOUT_ARRIVAL
          arrivals++;
#endif
          empty_bucket(b);
          unlock_block(kService, to, 1);
          taken[b] = false;
          unlock_block(kService, b, 1)
       :: else ->
          unlock_block(kService, b, 0);
          if
          :: to != 0 -> taken[to] = false; unlock_block(kService, to, 0)
          :: else
          fi
       fi
    :: else
    fi
  } unless { dies[kService] };
  at_work[kService]--
}

/* HashLines::find(), and a hit without a lock */
proctype Finder() {
  byte b, before, seen, copied, promised;
  d_step { was_absent = (directory == 0); promised = written };
  do
  :: before = arrivals;
     b = directory;
     if
     :: b != 0 && holds[b] -> break
     :: else ->
        if
        :: d_step { arrivals == before -> b = 0 }; break
        :: arrivals != before
        fi
     fi
  od;
  if
  :: b == 0 -> assert(was_absent)
  :: d_step { b != 0 && lock_owner[b] == kNobody -> seen = sequence[b] };
     if
     :: holds[b] && valid[b] ->
        copied = bytes[b];
        if
        :: lock_owner[b] == kNobody && sequence[b] == seen -> assert(copied >= promised)
        :: else
        fi
     :: else
     fi
  :: b != 0 && lock_owner[b] != kNobody
  fi
}

/* sweep_buckets(): settle_bucket(), settle_locked() */
inline settle_bucket(b) {
  if
  :: lock_owner[b] != kNobody && !is_alive[lock_owner[b]] ->
     lock_block(kSuccessor, b);
     if
     :: !holds[b] && taken[b] -> empty_bucket(b); taken[b] = false
     :: else
     fi;
     unlock_block(kSuccessor, b, 1)
  :: d_step { lock_owner[b] == kNobody && !holds[b] && taken[b] -> lock_owner[b] = kSuccessor };
     if
     :: !holds[b] && taken[b] -> empty_bucket(b); taken[b] = false
     :: else
     fi;
     unlock_block(kSuccessor, b, 1)
  :: else
  fi
}

inline kill(owner) {
  dies[owner] = true;
  at_work[owner] == 0;
  is_alive[owner] = false;
  settle_bucket(1);
  settle_bucket(2)
}

proctype Reaper() {
  byte deaths;
  do
  :: deaths < DEATHS && at_work[kWriter] != 0 && is_alive[kWriter] -> deaths++; kill(kWriter)
  :: deaths < DEATHS && at_work[kService] != 0 && is_alive[kService] -> deaths++; kill(kService)
  :: deaths < DEATHS && at_work[kClient] != 0 && is_alive[kClient] -> deaths++; kill(kClient)
  :: at_work[kWriter] == 0 && at_work[kService] == 0 && at_work[kClient] == 0 -> break
  od;
  settle_bucket(1);
  settle_bucket(2);
  d_step {
    assert(lock_owner[1] == kNobody && lock_owner[2] == kNobody);
    assert(taken[1] == (directory == 1) && taken[2] == (directory == 2));
    assert(store >= written ||
           (directory != 0 && holds[directory] && valid[directory] && dirty[directory] && marked[directory] &&
            counts_as_dirty(state[directory]) && bytes[directory] >= written))
  }
}

init {
  atomic {
    is_alive[kWriter] = true;
    is_alive[kService] = true;
    is_alive[kClient] = true;
    is_alive[kSuccessor] = true;
#ifdef BEGINS_DIRTY
    lock_owner[1] = kNobody;
    holds[1] = true;
    valid[1] = true;
    dirty[1] = true;
    state[1] = kDirty;
    bytes[1] = 1;
    marked[1] = true;
    taken[1] = true;
    directory = 1;
    written = 1;
#endif
#ifdef WRITER
    at_work[kWriter]++;
    run Writer();
#endif
#ifdef FLUSHER
    at_work[kService]++;
    run Flusher();
#endif
#ifdef MOVER
    at_work[kService]++;
    run Mover();
#endif
#ifdef SYNCER
    at_work[kClient]++;
    run Syncer();
#endif
#ifdef FINDER
    run Finder();
#endif
    run Reaper()
  }
}
