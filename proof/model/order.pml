/*
 * Three values, each made of the one before, and a writer that names them in this order: it commits, and their ends reach Redis one by one, or fail. Or
 * it dies, and its intents expire. Others load meanwhile.
 */

/* holds: a write of which ends fail, and two loads | -DFAILS=2 */
/* holds: a writer that dies, and two loads | -DDIES=1 */
/* ends: a write of which an end fails | -DFAILS=1 */
/* large: a write of which ends fail, and more loads | -DFAILS=2 -DLOADS=3 */
#include "common.h"

#ifndef LOADS
#define LOADS 2
#endif
#ifndef FAILS
#define FAILS 0
#endif
#ifndef DIES
#define DIES 0
#endif
#define ALL 7

/*
 * The rules of the protocol. Each is left out in turn, within those bounds, and must be missed.
 */
#define SOURCES_FIRST 1 /* rule: what is named later ends when what is named first has ended | -DLOADS=1 */
#define AGAIN 2         /* rule: it ends again when what was pending has ended | -DLOADS=1 -DFAILS=1 */
#define IN_STEPS 3      /* rule: in the same order | -DLOADS=2 -DFAILS=1 */
#define STANDS_LONGER 4 /* rule: its intent expires later | -DLOADS=1 -DDIES=1 */

byte source = 1;
byte value[3];    /* the version that Redis has; 0: none */
byte proof[3];    /* changes with each end */
byte pending;     /* whose ends have failed, as bits */
byte after[3];    /* what ends after them, as bits */
byte failed, busy;

inline end(i) { value[i] = 0; proof[i]++ }

/* Draws one of those that are left. */
inline one(some, i, inorder) {
  if
  :: some & 1 -> i = 0
  :: some & 2 && !(inorder && some & 1) -> i = 1
  :: some & 4 && !(inorder && some & 3) -> i = 2
  fi;
  some = some & ~(1 << i)
}

/* Ends what the call names, step by step. */
inline tell(left, i, inorder) {
  do
  :: left == 0 -> break
  :: atomic { left != 0 ->
       one(left, i, inorder);
       if
       :: end(i)
       :: failed < FAILS -> failed++; pending = pending | (1 << i); after[i] = after[i] | (ALL << (i + 1) & ALL)
       fi }
  od
}

proctype Writer() {
  byte left = ALL, i;
  source = 2;
  if
  :: tell(left, i, RULE(SOURCES_FIRST))
  :: DIES ->
     do
     :: left == 0 -> break
     :: atomic { left != 0 -> one(left, i, RULE(STANDS_LONGER)); end(i) }
     od
  fi;
  busy--
}

/* Sends what is pending again, and then what comes after it. */
proctype Replay() {
  byte left, i;
  do
  :: atomic { pending != 0 ->
       one(pending, i, 0);
       end(i);
       left = (RULE(AGAIN) -> after[i] : 0);
       after[i] = 0 };
     tell(left, i, RULE(IN_STEPS))
  :: atomic { pending == 0 && busy == 0 -> break }
  od;
  /* Nobody writes or loads any more. */
  assert(value[0] != 1 && value[1] != 1 && value[2] != 1)
}

/* A load of one of them, made of the nearest that Redis has. */
proctype Load() {
  byte i, made, held;
  if :: i = 0 :: i = 1 :: i = 2 fi;
  if
  :: atomic { value[i] != 0 } /* a hit */
  :: atomic { value[i] == 0 -> held = proof[i] };
     atomic {
       if
       :: i == 2 && value[1] != 0 -> made = value[1]
       :: i > 0 && value[0] != 0 && !(i == 2 && value[1] != 0) -> made = value[0]
       :: else -> made = source
       fi };
     atomic {
       if
       :: proof[i] == held -> value[i] = made
       :: else
       fi }
  fi;
  busy--
}

init {
  byte i;
  atomic {
    value[0] = 1; value[1] = 1; value[2] = 1;
    busy = 1 + LOADS;
    run Writer(); run Replay();
    do :: i < LOADS -> run Load(); i++ :: else -> break od
  }
}
