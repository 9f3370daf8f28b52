/*
 * What a transaction reads, and what callers outside get meanwhile: Gets with and without the intent's context, their flights and batches.
 * The transaction writes two rows, and names row 0 before and row 1 later, by Also. Version 1 of a row is committed, and 2 is the transaction's.
 * The scripts are short here: there is one intent, and no TTL is late. intend.pml is about that.
 */

/* holds: it reads beside two callers outside | -DOUTSIDE=2 -DALSOS=1 -DDIES=0 */
/* holds: it reads beside a caller outside, with batches, and may die | -DALSOS=1 -DBATCH=1 */
/* holds: Also is repeated, beside two callers outside | -DINSIDE=0 -DOUTSIDE=2 */
/* ends: it reads beside a caller outside, with batches | -DALSOS=1 -DBATCH=1 -DDIES=0 */
/* large: it reads beside two callers outside, with batches, Also is repeated, and it may die | -DOUTSIDE=2 -DBATCH=1 */
#include "common.h"

#ifndef INSIDE
#define INSIDE 1 /* Gets with the intent's context */
#endif
#ifndef OUTSIDE
#define OUTSIDE 1
#endif
#ifndef ALSOS
#define ALSOS 2
#endif
#ifndef BATCH
#define BATCH 0
#endif
#ifndef SEES
#define SEES 1 /* it is looked at what the transaction gets */
#endif
#ifndef DIES
#define DIES 1
#endif

/*
 * The rules. Each is left out in turn, within those bounds, and must be missed.
 */
#define STORES_NOTHING 1 /* rule: what a transaction has read is not stored | -DALSOS=1 */
#define NOR_LATER 2      /* rule: nor after UpdateTimeout | -DALSOS=1 */
#define OWN_FLIGHT 3     /* rule: it shares no load with callers outside | -DALSOS=1 */
#define OWN_TO_THE_END 4 /* rule: nor after Done, for as long as its context lives | -DALSOS=1 */
#define NO_BATCH 5       /* rule: nor by a batch | -DALSOS=1 -DBATCH=1 -DSEES=0 */
#define READS_PAST 6     /* rule: it reads past the cache what it has named | -DALSOS=1 -DOUTSIDE=0 */
#define PAST_LATER 7     /* rule: also after UpdateTimeout | -DALSOS=1 -DOUTSIDE=0 */
#define ALSO_ASKS_AGAIN 8 /* rule: Also asks again for names of a call that failed | -DINSIDE=0 */
#define ALSO_ASKS_ITSELF 9 /* rule: and for those of a call that has no answer yet | -DINSIDE=0 */
#define ALSO_IN_TIME 10  /* rule: after UpdateTimeout Also is an error | -DINSIDE=0 -DOUTSIDE=2 -DALSOS=1 */
#define ALSO_LOOKS_AGAIN 11 /* rule: also when that is over before the answer | -DINSIDE=0 -DOUTSIDE=2 -DALSOS=1 */
#define DONE_AGAIN 12    /* rule: Done invalidates though UpdateTimeout has done so | -DINSIDE=0 */

#define GONE 9 /* a loader's error: the transaction has already been committed or rolled back */

mtype = { within, outside };

byte committed = 1, floor = 1;

/* Redis, by row. */
byte value[2], gen[2];
bool stands[2], ends[2], mark[2]; /* the intent; the value ends with it; the lease began under it */

/* The Guard. */
bool named[2];
bool placed, failed, underway; /* the intent on row 1: Redis has said that it stands; a call failed; a call has no answer yet */
bool over, called;             /* UpdateTimeout, Done */
byte flight[2], answer[2];     /* 1: it may be joined; 2: its loader has read */
bool gathers;                  /* a batch waits for more rows */
byte members, batches, batched;  /* its rows, as bits; how many there were; what the last one read */

/* The transaction. */
bool wrote, ended, dead;
bool sure;                     /* Also has returned nil, and UpdateTimeout was not over since */
byte busy;

inline state() {
  printf("# value %d %d committed %d floor %d named %d %d over %d\n", value[0], value[1], committed, floor, named[0], named[1], over)
}

inline intend(k) {
  stands[k] = 1;
  if :: value[k] -> ends[k] = 1 :: else fi;
  if :: gen[k] -> mark[k] = 1 :: else fi
}

inline done(k) { stands[k] = 0; value[k] = 0; ends[k] = 0; gen[k] = 0; mark[k] = 0 }

/* What a loader reads that has the transaction's context, or another one. */
#define row(inside) (inside -> (ended -> GONE : (wrote -> 2 : committed)) : committed)

/* Whoever comes now does not join the loads of these rows. */
inline close(rows) {
  if :: rows & 1 && flight[0] -> flight[0] = 2 :: else fi;
  if :: rows & 2 && flight[1] -> flight[1] = 2 :: else fi
}

/* The end of a Get. What it knew is of no interest any more. */
inline returns() {
  printf("@returns %d %d %d ; the Get %e returns version %d of row %d\n", inside, k, v, who, v, k);
  assert(inside || v != GONE);                   /* nobody outside gets a transaction's error */
  assert(inside || v <= committed || v == GONE); /* nobody outside gets a row that is not committed */
  assert(inside || v >= need);                   /* nor an older one after Done, or after the end of a dead process' intent */
  assert(!must || v >= 2);                       /* a transaction sees what it wrote */
  k = 0; v = 0; g = 0; need = 0; n = 0; must = 0; alone = 0; apart = 0; keeps = 0; leads = 0; busy--
}

/* A call of Get. The variables say what is its transaction's alone. */
proctype Get(mtype who) {
  byte k, v, g, need, n;
  bool inside = who == within, past, must, alone, apart, keeps, leads;
  atomic {
    if :: k = 0 :: k = 1 fi;
    need = floor;
    must = SEES && inside && named[k] && wrote && !called;
    past = inside && named[k] && !called && RULE(READS_PAST) && (!over || RULE(PAST_LATER));
    alone = past || inside && RULE(OWN_FLIGHT) && (!called || RULE(OWN_TO_THE_END));
    apart = inside && RULE(NO_BATCH);
    keeps = !past && !(inside && RULE(STORES_NOTHING) && (!over || RULE(NOR_LATER)));
    v = (past -> 0 : value[k]); past = 0;
    printf("@get %d %d %d ; a Get %e, of row %d, finds version %d\n", inside, k, v, who, k, v);
    if :: v -> returns(); goto end :: else fi
  };
  if
  :: atomic { !alone && flight[k] == 1 -> printf("@join %d %d ; the Get joins a load of row %d\n", inside, k, k) };
     atomic { flight[k] == 0 -> v = answer[k]; returns(); goto end }
  :: atomic { alone || flight[k] == 0 -> /* acquire.lua */
       if :: !alone -> flight[k] = 1; leads = 1 :: else fi;
       if
       :: keeps && value[k] == 0 && gen[k] == 0 ->
          g = _pid; gen[k] = g; mark[k] = stands[k]; printf("@acquire %d %d ; the Get %e: acquire.lua for row %d: a lease\n", inside, k, who, k)
       :: else -> printf("@loads %d %d ; the Get %e calls the loader of row %d, and will store nothing\n", inside, k, who, k)
       fi }
  fi;
#if BATCH
  if
  :: atomic { !apart && gathers ->
       n = batches; members = members | (1 << k); printf("@gather %d %d ; its load of row %d is part of a batch\n", inside, k, k) };
     atomic { batches != n -> v = batched }
  :: atomic { !apart && !gathers ->
       gathers = 1; members = 1 << k; printf("@begin %d %d ; the Get %e begins a batch with row %d\n", inside, k, who, k) };
     atomic { v = row(inside); batched = v; gathers = 0; batches++; close(members); members = 0 }
  :: atomic { apart -> v = row(inside); if :: leads -> close(1 << k) :: else fi }
  fi;
#endif
  atomic {
#if !BATCH
    v = row(inside);
#endif
    if :: leads -> close(1 << k); answer[k] = v :: else fi;
    printf("@load %d %d %d ; the loader of the Get %e has version %d of row %d\n", inside, k, v, who, v, k)
  };
  atomic { /* fill.lua */
    if
    :: g && gen[k] == g ->
       if :: v != GONE && (!mark[k] || stands[k]) -> value[k] = v; ends[k] = stands[k] :: else fi;
       gen[k] = 0; mark[k] = 0
    :: else
    fi;
    if :: leads -> flight[k] = 0 :: else fi;
    printf("@fill %d %d ; the Get %e: fill.lua for row %d\n", inside, k, who, k); state(); returns()
  };
end:
}

/* It goes on beyond UpdateTimeout if no Also says so. */
proctype Transaction() {
  byte calls, asks;
  bool known;
  atomic { intend(0); named[0] = 1; printf("@intend ; the transaction: Intend, of row 0\n"); state() };
  atomic { wrote = 1; printf("@write ; it writes both rows\n") };
  do
  :: atomic { !asks && (known || calls == ALSOS) -> break }
  :: atomic { !asks && !known && calls < ALSOS -> calls++; named[1] = named[1] || !over || !RULE(ALSO_IN_TIME);
       if
       :: over && RULE(ALSO_IN_TIME) -> printf("@also 0 ; Also, of row 1: UpdateTimeout is over\n")
       :: (!over || !RULE(ALSO_IN_TIME)) && (placed || failed && !RULE(ALSO_ASKS_AGAIN) || underway && !RULE(ALSO_ASKS_ITSELF)) ->
          known = 1; sure = 1; printf("@also 1 ; Also, of row 1: nil, without a request\n")
       :: else -> asks = 1; printf("@sends ; Also, of row 1, sends intend.lua\n")
       fi }
  :: atomic { asks == 1 ->
       if
       :: asks = 2; intend(1); printf("@stands ; intend.lua\n"); state()
       :: asks = 0; failed = 1; printf("@also 0 ; Also fails\n")
       :: !underway -> asks = 0; underway = 1; printf("@also 0 ; the context of Also ends before there is an answer\n")
       fi }
  :: atomic { asks == 2 -> asks = 0;
       if
       :: over && RULE(ALSO_LOOKS_AGAIN) && RULE(ALSO_IN_TIME) -> printf("@also 0 ; Also: UpdateTimeout is over\n")
       :: else -> placed = 1; known = 1; sure = 1; printf("@also 1 ; Also: nil\n")
       fi }
  od;
  if
  :: atomic { known -> committed = 2; ended = 1; printf("@commit ; it commits\n") }
  :: atomic { ended = 1; wrote = 0; printf("@rollback ; it is rolled back\n") }
  fi;
  if
  :: atomic { called = 1; printf("@called ; Done is called\n") };
     atomic {
       if
       :: !over || RULE(DONE_AGAIN) -> done(0); if :: named[1] -> done(1) :: else fi
       :: else
       fi;
       floor = committed; printf("@done ; Done: done.lua; nobody may see what is older than version %d\n", floor); state()
     }
  :: atomic { DIES -> dead = 1; printf("@crash ; the process dies\n") }
  fi;
  atomic { calls = 0; known = 0; busy-- }
}

proctype Trouble() {
  bool sent;
  do
  :: atomic { busy == 0 && (!dead || !stands[0] && !stands[1]) -> break }
  :: atomic { stands[0] && !over && !called && !dead -> over = 1; sure = 0; printf("@timeout ; UpdateTimeout is over\n") }
  :: atomic { over && !sent && !dead -> sent = 1; done(0); if :: named[1] -> done(1) :: else fi;
       printf("@invalidate ; what is named is invalidated: done.lua\n"); state() }
  :: atomic { underway -> underway = 0;
       if
       :: intend(1); placed = !dead; printf("@arrives ; the call of Also arrives: intend.lua\n"); state()
       :: failed = 1; printf("@lost ; the call of Also is lost\n")
       fi }
  :: atomic { dead && !underway && (stands[0] || stands[1]) -> /* until.lua, and what ends by its TTL */
       byte i;
       for (i : 0 .. 1) {
         if :: stands[i] && ends[i] -> value[i] = 0; ends[i] = 0 :: else fi;
         if :: stands[i] && mark[i] -> gen[i] = 0; mark[i] = 0 :: else fi;
         stands[i] = 0
       }
       if :: sure -> floor = committed :: else fi;
       printf("@expire ; its intents are over; nobody may see what is older than version %d\n", floor); state() }
  od
}

init {
  byte i;
  atomic {
    if :: value[0] = 1; value[1] = 1 :: skip fi;
    state();
    busy = 1 + INSIDE + OUTSIDE;
    run Transaction();
    do :: i < INSIDE -> run Get(within); i++ :: else -> break od;
    i = 0;
    do :: i < OUTSIDE -> run Get(outside); i++ :: else -> break od;
    run Trouble()
  }
}
