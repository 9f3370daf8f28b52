/*
 * One key: updates and puts with their intents, beside loads, a writer that only invalidates, and late copies.
 * The write lock is a holder that may be lost; rwlock.pml is about how it is had.
 */

/* holds: two updates whose lock or intent may be lost, and a load | -DLOSSES=1 */
/* holds: an update, one that dies, and two loads | -DLOADS=2 -DCRASHES=1 */
/* holds: two puts, one of which may lose its lock, and a load | -DPUTS=1 -DLOSSES=1 */
/* holds: a put, an invalidation, and late copies | -DPUTS=1 -DWRITERS=1 -DINVALIDATIONS=1 -DCOPIES=2 */
/* holds: two puts, one of which dies, while a lock and intents are lost | -DPUTS=1 -DLOSSES=2 -DCRASHES=1 -DFENCED=1 */
/* holds: two puts, one of which loses its lock and dies; the source checks no fence | -DPUTS=1 -DLOSSES=1 -DCRASHES=1 -DLOADS=0 */
/* holds: nothing but messages to wake two loads | -DWRITERS=1 -DLOADS=2 -DTIMERS=0 */
/* ends: an update that dies, and two loads | -DLOADS=2 -DCRASHES=1 */
/* large: two puts that lose a lock and an intent, late copies | -DPUTS=1 -DLOSSES=2 -DCOPIES=1 */
/* large: two loads, two updates and losses | -DLOADS=2 -DLOSSES=2 */
#include "common.h"

#ifndef WRITERS
#define WRITERS 2
#endif
#ifndef LOADS
#define LOADS 1
#endif
#ifndef PUTS
#define PUTS 0          /* 1: the updates are puts */
#endif
#ifndef INVALIDATIONS
#define INVALIDATIONS 0 /* writers that commit and invalidate */
#endif
#ifndef LOSSES
#define LOSSES 0        /* locks, intents and leases that are lost */
#endif
#ifndef CRASHES
#define CRASHES 0       /* writers that die */
#endif
#ifndef CACHED
#define CACHED 0        /* 1: the old version is cached at first */
#endif
#ifndef FENCED
#define FENCED 0        /* 1: the source refuses a writer whose lock another one has had since */
#endif
#ifndef COPIES
#define COPIES 0        /* scripts that arrive a second time, late */
#endif

/*
 * The rules of the protocol. Each is left out in turn, within those bounds, and must be missed.
 */
#define BEGIN_ANNOUNCES 2   /* rule: an update leaves an intent before it writes | -DWRITERS=1 -DCRASHES=1 */
#define BEGIN_REMOVES 3     /* rule: and removes the value | -DWRITERS=1 -DCRASHES=1 -DCACHED=1 */
#define BEGIN_ENDS_LEASE 4  /* rule: and the leases | -DWRITERS=1 -DCRASHES=1 */
#define INTENT_HOLDS 5      /* rule: while an intent stands, nobody gets a lease | -DWRITERS=1 -DCRASHES=1 */
#define INTENT_OUTLIVES 6   /* rule: an intent is not renewed once it is gone | -DWRITERS=1 -DCOPIES=1 -DTIMERS=0 */
#define END_REMOVES 7       /* rule: the end removes what a load stored when the intent was lost | -DWRITERS=1 -DLOSSES=1 */
#define END_ENDS_LEASE 8    /* rule: and its lease | -DWRITERS=1 -DLOSSES=1 */
#define ONE_INTENT_EACH 9   /* rule: each writer has an intent of its own | -DLOSSES=1 -DCRASHES=1 */
#define END_WAKES 10        /* rule: the end wakes those that wait | -DWRITERS=1 -DTIMERS=0 */
#define PUT_PROVES 11       /* rule: a put stores only if it finds its generation | -DPUTS=1 -DWRITERS=1 -DINVALIDATIONS=1 */
#define PUT_GENERATION_HAS_TIME 12 /* rule: which has the time in it | -DPUTS=1 -DWRITERS=1 -DINVALIDATIONS=1 -DCOPIES=2 -DLOADS=0 */
#define PUT_ALONE 13        /* rule: a put stores nothing while another writer's intent stands | -DPUTS=1 -DLOSSES=1 -DCRASHES=1 -DLOADS=0 */
#define PUT_REMEMBERS 16    /* rule: nor when another writer's intent has expired since it began | -DPUTS=1 -DLOSSES=1 -DCRASHES=1 -DLOADS=0 */
#define EXPIRES 15          /* rule: the intent of a dead writer expires | -DWRITERS=1 -DCRASHES=1 */

mtype = { LEASE, WRITING, VALUE, HELD, STORED, REFUSED, END_UPDATE, PUT };

byte source = 1, floor = 1;
byte fences, last_fence;

/* Redis. */
byte value, gen;        /* 0: none */
byte by;                /* the put that stored the value, from 1 on; 0: a load */
bool taken;             /* a load holds the lease */
byte intents;           /* of the writers, as bits */
byte announced;         /* the same, with those that have expired */
byte serial;
byte holder = 255;      /* of the write lock */

byte woken;             /* loads that got a message, as bits */
byte inbox;
byte wrote[WRITERS], proof[WRITERS], phase[WRITERS]; /* of each writer: its version, its generation; 1 begun, 2 ended, 3 dead */
byte losses, crashes, copies, busy;
byte doomed;            /* writers that live and whose intents were lost, as bits: of one that dies as well, nothing is promised */

inline state() {
  printf("# value %d gen %d taken %d intents %d source %d floor %d\n", value, gen, taken, intents, source, floor)
}

inline forget() {
  value = 0;
  if :: gen != 0 && taken -> woken = woken | inbox; inbox = 0 :: else fi;
  gen = 0; taken = false
}

inline promise(v) {
  if :: v > floor -> floor = v :: else fi;
  assert(value == 0 || value >= floor) /* who reads after an update gets no older value */
}

/* begin_update.lua */
inline begin_update(t) {
  if
  :: RULE(BEGIN_ANNOUNCES) ->
     intents = intents | (RULE(ONE_INTENT_EACH) -> 1 << t : 1);
     announced = intents | (PUTS -> 0 : announced)
  :: else
  fi;
  if :: RULE(BEGIN_REMOVES) -> value = 0 :: else fi;
  if
  :: RULE(BEGIN_ENDS_LEASE) -> woken = woken | inbox; inbox = 0; gen = 0; taken = false
  :: else
  fi;
  if
  :: PUTS -> serial++; gen = (RULE(PUT_GENERATION_HAS_TIME) -> serial : 100 + t); taken = false
  :: else
  fi
}

inline end_intent(t) {
  intents = intents & ~(RULE(ONE_INTENT_EACH) -> 1 << t : 1);
  announced = (intents -> announced & ~(1 << t) : 0);
  if :: intents == 0 && RULE(END_WAKES) -> woken = woken | inbox; inbox = 0 :: else fi
}

/* end_update.lua */
inline end_update(t) {
  if :: RULE(END_REMOVES) -> value = 0 :: else fi;
  if :: RULE(END_ENDS_LEASE) -> if :: taken -> woken = woken | inbox; inbox = 0 :: else fi; gen = 0; taken = false :: else fi;
  end_intent(t)
}

/* put.lua. That its own intent is there is not needed for any promise here, since PUT_REMEMBERS; the script looks all the same. */
inline put(t, g, v) {
  if
  :: v != 0 && value == v && by == t + 1 -> skip /* a second copy finds what the first has stored */
  :: else ->
     if
     :: (gen == g && gen != 0 || !RULE(PUT_PROVES)) && announced & (1 << t) && (!((RULE(PUT_REMEMBERS) -> announced : intents) & ~(1 << t)) || !RULE(PUT_ALONE)) ->
        assert(v >= floor); /* never a stale put */
        forget(); value = v; by = t + 1
     :: else -> forget()
     fi;
     end_intent(t)
  fi
}

proctype Update(byte me) {
  byte v, fence;
  atomic { holder == 255 -> holder = me; fences++; fence = fences; printf("@lock %d ; writer %d has the lock\n", me, me) };
  atomic {
    begin_update(me); proof[me] = gen; phase[me] = 1;
    printf("@begin %d ; writer %d: begin_update.lua\n", me, me); state()
  };
  if
  :: atomic { FENCED && fence < last_fence -> printf("@refused %d ; the source refuses writer %d\n", me, me) }
  :: atomic { (!FENCED || fence >= last_fence) -> last_fence = fence; source++; v = source; wrote[me] = v; printf("@commit %d %d ; writer %d commits version %d\n", me, v, me, v) }
  :: atomic { crashes < CRASHES -> crashes++; phase[me] = 3; printf("@crash %d ; writer %d dies\n", me, me); goto dead }
  fi;
  if
  :: atomic {
       phase[me] = 2;
       if
       :: PUTS && v != 0 -> put(me, proof[me], v)
       :: else -> end_update(me)
       fi;
       promise(v);
       if :: holder == me -> holder = 255 :: else fi;
       printf("@end %d %d ; writer %d: %e.lua, and nobody may see what is older than version %d\n", me, v, me, (PUTS -> PUT : END_UPDATE), floor); state()
     }
  :: atomic { crashes < CRASHES && !(doomed & (1 << me)) -> crashes++; phase[me] = 3; printf("@crash %d ; writer %d dies\n", me, me) }
  fi;
dead: busy--
}

proctype Invalidation() {
  byte v;
  atomic { source++; v = source; printf("@write %d ; somebody commits version %d, without an update\n", v, v) };
  atomic { forget(); promise(v); printf("@invalidate %d ; and invalidates: nobody may see what is older than version %d\n", v, floor); state() };
  busy--
}

proctype Load(byte me) {
  byte v, g;
  mtype reply;
ask:
  atomic {
    woken = woken & ~(1 << me);
    if
    :: value != 0 -> reply = VALUE; assert(value >= floor) /* read your writes */
    :: value == 0 && intents != 0 && RULE(INTENT_HOLDS) -> reply = WRITING; inbox = inbox | (1 << me)
    :: value == 0 && (intents == 0 || !RULE(INTENT_HOLDS)) && gen != 0 && taken -> reply = HELD; inbox = inbox | (1 << me)
    :: value == 0 && (intents == 0 || !RULE(INTENT_HOLDS)) && (gen == 0 || !taken) ->
       if :: gen == 0 -> serial++; gen = serial :: else fi;
       taken = true; reply = LEASE; g = gen; announced = (intents -> announced : 0)
    fi;
    printf("@acquire %d %e ; load %d: acquire.lua: %e\n", me, reply, me, reply); state()
  };
  if
  :: reply == LEASE ->
     atomic { v = source; printf("@load %d %d ; load %d reads version %d\n", me, v, me, v) };
     atomic {
       if
       :: gen == g && g != 0 ->
          assert(v >= floor); /* never a stale fill */
          woken = woken | inbox; inbox = 0;
          value = v; by = 0; gen = 0; taken = false; reply = STORED
       :: else -> reply = REFUSED
       fi;
       printf("@fill %d %d %e ; load %d: fill.lua with version %d: %e\n", me, v, reply, me, v, reply); state()
     }
  :: reply == VALUE
  :: else ->
     if
     :: atomic { woken & (1 << me) -> printf("@hear %d ; load %d hears that it may ask again\n", me, me) }; goto ask
     :: atomic { TIMERS && !(woken & (1 << me)) && (intents == 0 && reply == WRITING || reply == HELD && !taken) -> printf("@due %d ; load %d: what it waits for would end now\n", me, me) }; goto ask
     fi
  fi;
  busy--
}

/* The writer is dead, or has ended and a late copy left the intent. */
#define gone(t) (phase[t] >= 2 && (intents & (1 << t) && RULE(EXPIRES) || phase[t] == 3 && floor < wrote[t] && !(intents & (1 << t))))

inline expire(t) {
  intents = intents & ~(1 << t);
  printf("@expire %d ; the intent of writer %d expires\n", t, t); state();
  promise(wrote[t])
}

proctype Trouble() {
  do
  :: atomic { busy == 0 && (intents == 0 || !RULE(EXPIRES)) -> break }
  :: atomic { losses < LOSSES && holder != 255 -> losses++; printf("@lose_lock %d ; writer %d is paused, and its lock expires\n", holder, holder); holder = 255 }
  :: atomic { losses < LOSSES && crashes == 0 && intents != 0 -> losses++; doomed = 255; intents = 0; announced = 0; printf("@lose_intents ; Redis evicts the intents\n"); state() }
  :: atomic { losses < LOSSES && phase[0] == 1 && intents & 1 -> losses++; doomed = doomed | 1; intents = intents & ~1; printf("@lose_intent 0 ; writer 0 is paused, and its intent expires\n"); state() }
  :: atomic { losses < LOSSES && gen != 0 -> losses++; gen = 0; taken = false; inbox = 0; printf("@evict ; Redis evicts the lease\n"); state() }
  :: atomic { gone(0) -> expire(0) }
  :: atomic { WRITERS > 1 && gone(WRITERS - 1) -> expire(WRITERS - 1) }
  :: atomic { phase[0] == 3 && holder == 0 && (intents & 1) == 0 -> holder = 255; printf("@expire_lock 0 ; so does its lock\n") }
  :: atomic { WRITERS > 1 && phase[WRITERS - 1] == 3 && holder == WRITERS - 1 && (intents & (1 << (WRITERS - 1))) == 0 -> holder = 255; printf("@expire_lock %d ; so does its lock\n", WRITERS - 1) }
  :: atomic { copies < COPIES && phase[0] >= 1 -> copies++;
       if
       :: begin_update(0); printf("@late_begin 0 ; a late copy of writer 0's begin_update.lua\n"); state()
       :: phase[0] == 2 && PUTS -> put(0, proof[0], wrote[0]); printf("@late_put 0 ; a late copy of its put.lua\n"); state()
       :: phase[0] == 2 && !PUTS -> end_update(0); printf("@late_end 0 ; a late copy of its end_update.lua\n"); state()
       :: phase[0] == 2 && (!RULE(INTENT_OUTLIVES) || intents & 1) -> intents = intents | 1; printf("@late_renew 0 ; a late copy of its renew_update.lua\n"); state()
       fi }
  od
}

init {
  byte i;
  atomic {
    if :: CACHED -> value = 1 :: else fi;
    busy = WRITERS + LOADS + INVALIDATIONS;
    do :: i < WRITERS -> run Update(i); i++ :: else -> break od;
    i = 0;
    do :: i < LOADS -> run Load(i); i++ :: else -> break od;
    if :: INVALIDATIONS > 0 -> run Invalidation() :: else fi;
    run Trouble()
  }
}
