/*
 * Three values, each made of the one before, and a call that names all of them: their ends reach Redis one by one, one may fail, and others load meanwhile. With TAG, the call names the first two by a tag.
 */

/* holds: keys, of which the end of one fails | -DFAILS=1 */
/* holds: a tag and a key, of which an end fails | -DTAG=1 -DFAILS=1 -DLOADS=1 */
/* ends: keys, of which the end of one fails | -DFAILS=1 */
/* large: a tag and a key, and more loads | -DTAG=1 -DFAILS=1 */
#include "common.h"

#ifndef LOADS
#define LOADS 2
#endif
#ifndef FAILS
#define FAILS 0
#endif
#ifndef TAG
#define TAG 0
#endif
#define ALL 7
#define TAGGED (TAG -> 3 : 0)

/*
 * The rules of the protocol. Each is left out in turn, within those bounds, and must be missed.
 */
#define SOURCES_FIRST 1 /* rule: what is made of something ends when that has ended | -DLOADS=1 */
#define AGAIN 2         /* rule: it ends again when what was pending has ended | -DLOADS=1 -DFAILS=1 */
#define IN_EACH 3       /* rule: tags end in each stage | -DLOADS=1 -DTAG=1 */

byte source = 1;
byte value[3];    /* the version that Redis has; 0: none */
byte proof[3];    /* changes with each end */
byte pending;     /* whose ends have failed, as bits */
byte after[3];    /* what ends after them, as bits */
byte failed, busy;

inline end(i) { value[i] = 0; proof[i]++ }

/* Of what a call names, what ends in a stage, and after it. */
#define of_stage(mask, n) (RULE(SOURCES_FIRST) -> ((mask & (1 << n) & ~TAGGED) | (n == 0 || RULE(IN_EACH) -> mask & TAGGED : 0)) : (n == 0 -> mask : 0))
#define later(mask, n) (RULE(SOURCES_FIRST) && n < 2 -> mask & ((ALL << (n + 1)) | TAGGED) & ALL : 0)

/* Ends what the call names, in stages, and within each in any order. */
inline tell(mask, n, left, i) {
  n = 0;
  do
  :: n == 3 -> break
  :: n < 3 ->
     left = of_stage(mask, n);
     do
     :: left == 0 -> break
     :: atomic { left != 0 ->
          if
          :: left & 1 -> i = 0
          :: left & 2 -> i = 1
          :: left & 4 -> i = 2
          fi;
          left = left & ~(1 << i);
          if
          :: end(i)
          :: failed < FAILS -> failed++; pending = pending | (1 << i); after[i] = after[i] | later(mask, n)
          fi }
     od;
     n++
  od
}

proctype Writer() {
  byte n, left, i;
  source = 2;
  tell(ALL, n, left, i);
  busy--
}

/* Sends what is pending again, and then what comes after it. */
proctype Replay() {
  byte n, left, i, sent, mask;
  do
  :: atomic { pending != 0 ->
       if
       :: pending & 1 -> sent = 0
       :: pending & 2 -> sent = 1
       :: pending & 4 -> sent = 2
       fi;
       end(sent);
       mask = (RULE(AGAIN) -> after[sent] : 0);
       after[sent] = 0;
       pending = pending & ~(1 << sent) };
     tell(mask, n, left, i)
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
