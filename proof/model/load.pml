/*
 * One key: leases, generations, fills, invalidations, waiting, and late copies of every script.
 * Values are versions of what the source has. A Get that begins when `floor` is n may return n or later.
 */

/* holds: two Gets on each of two instances, while a lease is lost | -DWRITES=1 -DCOPIES=0 */
/* holds: a script that arrives a second time | -DGETS=1 -DWRITES=1 -DLOSSES=0 */
/* holds: three instances, and nothing but messages to wake them | -DINSTANCES=3 -DGETS=1 -DWRITES=1 -DCOPIES=0 -DLOSSES=0 -DTIMERS=0 */
/* holds: one of them dies, and a message is lost | -DWRITES=1 -DCOPIES=0 -DLOSSES=0 -DCRASHES=1 -DLOST_MESSAGES=1 */
/* holds: an invalidation that Redis does not answer | -DFAILED_WRITES=1 -DWRITES=1 -DCOPIES=0 -DLOSSES=0 */
/* ends: two instances | -DGETS=1 -DWRITES=1 -DCOPIES=0 */
/* large: two writes, late copies and lost leases | -DGETS=1 -DWRITES=2 */
/* large: two Gets each, and late copies | -DWRITES=1 -DLOSSES=0 */
/* large: three instances, and a lost lease | -DINSTANCES=3 -DGETS=1 -DWRITES=1 -DCOPIES=0 */
#include "common.h"

#ifndef INSTANCES
#define INSTANCES 2
#endif
#ifndef WRITES
#define WRITES 2
#endif
#ifndef GETS
#define GETS 2
#endif
#ifndef COPIES
#define COPIES 1        /* scripts that arrive a second time, late */
#endif
#ifndef LOSSES
#define LOSSES 1        /* leases that expire though their holder lives, or that Redis evicts */
#endif
#ifndef CRASHES
#define CRASHES 0
#endif
#ifndef LOST_MESSAGES
#define LOST_MESSAGES 0
#endif
#ifndef FAILED_WRITES
#define FAILED_WRITES 0 /* invalidations that Redis does not answer, and that are sent again */
#endif

#ifndef FEW
#define FEW 0           /* 1: every load ends with a fill */
#endif

#define LOADS (INSTANCES * GETS + 1)

/*
 * The rules of the protocol. Each is left out in turn, within those bounds, and must be missed.
 */
#define HELD_ONCE 1 /* rule: while a lease stands, nobody else gets it | -DWRITES=1 -DCOPIES=0 */
#define GENERATION_HAS_TIME 2 /* rule: a generation has the time in it, so none comes back | -DGETS=1 -DINSTANCES=1 -DWRITES=1 -DLOSSES=0 */
#define GENERATION_STAYS 3 /* rule: who takes over a lease keeps its generation | -DGETS=1 -DCOPIES=0 -DWRITES=0 */
#define GENERATION_PROVES 4 /* rule: a fill needs the generation that its load acquired | -DWRITES=1 -DCOPIES=0 */
#define FILL_ENDS_LEASE 5 /* rule: a fill ends the lease | -DWRITES=1 -DCOPIES=0 */
#define FILL_WAKES 6 /* rule: a fill wakes those that wait | -DINSTANCES=3 -DGETS=1 -DWRITES=1 -DCOPIES=0 -DLOSSES=0 -DTIMERS=0 */
#define REFUSED_FREES 7 /* rule: a fill that is refused frees the lease that a late copy took | -DINSTANCES=1 -DGETS=1 -DLOSSES=0 -DWRITES=1 */
#define RELEASE_CHECKS 9 /* rule: only the holder of a lease releases it | -DWRITES=1 -DCOPIES=0 */
#define RELEASE_WAKES 10 /* rule: a release wakes those that wait | -DINSTANCES=3 -DGETS=1 -DWRITES=1 -DCOPIES=0 -DLOSSES=0 -DTIMERS=0 */
#define FAIL_WAKES 11 /* rule: a failure wakes those that wait | -DINSTANCES=3 -DGETS=1 -DWRITES=1 -DCOPIES=0 -DLOSSES=0 -DTIMERS=0 */
#define INVALIDATE_ENDS_LEASE 12 /* rule: an invalidation ends the lease | -DWRITES=1 -DCOPIES=0 */
#define INVALIDATE_WAKES 13 /* rule: an invalidation wakes those that wait | -DINSTANCES=3 -DGETS=1 -DWRITES=1 -DCOPIES=0 -DLOSSES=0 -DTIMERS=0 */
#define READ_IS_NOT_JOINED 14 /* rule: no call joins a read that was sent before it began | -DWRITES=1 -DCOPIES=0 */
#define JOINED_NEEDS_STORED 15 /* rule: who joined a load gets its value only if that was stored | -DWRITES=1 -DCOPIES=0 */
#define JOINED_BEFORE_FILL 16 /* rule: and only if it joined before the fill was sent | -DWRITES=1 -DCOPIES=0 */
#define LATE_ASK_AGAIN 17 /* rule: who joined a wait after its request was sent does not get the value of the message | -DWRITES=1 -DCOPIES=0 */
#define MESSAGE_NAMES_GENERATION 18 /* rule: a message counts only for the generation that is waited for | -DWRITES=1 -DCOPIES=0 -DFEW=1 */
#define TIMER 19 /* rule: who waits asks again when the lease would end | -DWRITES=1 -DCOPIES=0 -DLOSSES=0 -DCRASHES=1 -DLOST_MESSAGES=1 */
#define PENDING_IS_LOADED 20 /* rule: an instance loads past the cache what it has not yet managed to invalidate | -DFAILED_WRITES=1 -DWRITES=1 -DCOPIES=0 -DLOSSES=0 */


mtype = { VALUE, LEASE, HELD, FAILED, STORED, REFUSED, PUSH, AGAIN, FAILURE };

/* The source, and what is promised. */
byte source = 1, floor = 1, own_floor = 1;

/* Redis: the value, and the lease's hash. */
byte value;                       /* 0: none */
byte token, gen;                  /* of the lease; gen 0: there is no hash; token 0: nobody holds it */
bool stands, failed;              /* before its deadline; a failure is remembered */
byte inbox;                       /* instances that wait, as bits */
byte serial;                      /* the time, for generations */

/* What is known of the loads from outside. */
byte rightful;                    /* loads under way that have lost nothing, as a count */
byte loading[LOADS], got[LOADS], filled[LOADS]; /* by token: 1 asked, 2 reads, 3 ended; the generation; the value that was to be stored */
bool right[LOADS];
byte untouched;                   /* loads since whose begin nothing was stored, invalidated or lost, as bits */
byte released[LOADS];

byte copies, losses, crashes, lost_messages;
bool pending, written;            /* an invalidation of instance 0 is; all writes are over */
byte running;                     /* instances */

chan mail[INSTANCES] = [3] of { mtype, byte, byte }; /* what, generation, value */

inline state() {
  printf("# value %d token %d gen %d stands %d failed %d inbox %d source %d floor %d\n", value, token, gen, stands, failed, inbox, source, floor)
}

/* Messages go to those that have registered, or are lost. */
inline wake(what, g, v) {
  w = 0;
  do
  :: w < INSTANCES ->
     if
     :: inbox & (1 << w) ->
        if
        :: lost_messages < LOST_MESSAGES -> lost_messages++
        :: nfull(mail[w]) -> mail[w]!what, g, v
        :: full(mail[w])  /* the process has what it needs to ask */
        fi
     :: else
     fi;
     w++
  :: else -> break
  od;
  inbox = 0; w = 0
}

inline no_lease() { untouched = 0; token = 0; gen = 0; stands = false; failed = false; inbox = 0 }

inline strip() { /* of the right to say that nobody else loads */
  if
  :: token != 0 && right[token] -> right[token] = false; rightful--
  :: else
  fi
}

/* acquire.lua */
inline acquire(t) {
  if
  :: value != 0 -> reply = VALUE; answer = value
  :: value == 0 && gen != 0 && token == t && t != 0 -> reply = LEASE; answer = gen
  :: value == 0 && gen != 0 && token != t && stands && !failed && RULE(HELD_ONCE) -> reply = HELD; answer = gen; inbox = inbox | (1 << me)
  :: value == 0 && gen != 0 && token != t && stands && failed -> reply = FAILED; answer = 0
  :: value == 0 && (gen == 0 || token != t && (!stands || !failed && !RULE(HELD_ONCE))) ->
     assert(rightful == 0); /* one load while the lease stands */
     strip();
     if
     :: gen == 0 || !RULE(GENERATION_STAYS) -> serial++; gen = (RULE(GENERATION_HAS_TIME) -> serial : 100 + t)
     :: else
     fi;
     token = t; stands = true; failed = false;
     reply = LEASE; answer = gen
  fi
}

/* fill.lua */
inline fill(t, g, v) {
  if
  :: gen != 0 && gen == g || !RULE(GENERATION_PROVES) ->
     assert(v >= floor && v >= value); /* never a stale fill */
     strip();
     value = v;
     if
     :: RULE(FILL_ENDS_LEASE) -> 
        if :: RULE(FILL_WAKES) -> wake(PUSH, g, v) :: else fi;
        no_lease()
     :: else
     fi;
     reply = STORED
  :: else ->
     assert(!(untouched & (1 << t))); /* a value that nothing has overtaken is stored */
     if
     :: token == t && gen != 0 && RULE(REFUSED_FREES) -> strip(); wake(AGAIN, gen, 0); no_lease()
     :: else
     fi;
     reply = REFUSED
  fi;
  assert(token != t || !RULE(FILL_ENDS_LEASE)) /* no lease stays behind a load that has ended */
}

/* release.lua, fail.lua */
inline release(t) {
  if
  :: token == t && t != 0 || !RULE(RELEASE_CHECKS) && gen != 0 ->
     if :: token == t -> strip() :: else fi;
     if :: RULE(RELEASE_WAKES) -> wake(AGAIN, gen, 0) :: else fi; no_lease()
  :: else
  fi
}

inline fail(t) {
  if
  :: token == t && t != 0 ->
     strip(); token = 0; failed = true; stands = true;
     if :: RULE(FAIL_WAKES) -> wake(FAILURE, gen, 0) :: else fi; inbox = 0
  :: else
  fi
}

/* invalidate.lua */
inline invalidate() {
  strip();
  value = 0;
  if
  :: RULE(INVALIDATE_ENDS_LEASE) -> 
     if :: RULE(INVALIDATE_WAKES) && gen != 0 -> wake(AGAIN, gen, 0) :: else fi;
     no_lease()
  :: else
  fi
}

inline returns(v, since) {
  printf("@return %d %d ; instance %d: its Get returns version %d, which must be %d or later\n", me, v, me, v, since);
  assert(v >= since) /* read your writes */
}

/*
 * The Gets of an instance, one after the other. A Get begins as late as it can, in the step of its first request, and callers join it as late as
 * they can: what they are promised is most then.
 */
proctype Instance(byte me) {
  byte need, answer, g, v, t, w, gets;
  mtype reply;
  do
  :: gets == GETS -> break
  :: gets < GETS ->
     gets++;
     atomic {
       need = floor; t = me * GETS + gets;
       if
       :: me == 0 && own_floor > floor -> need = own_floor
       :: else
       fi;
       if
       :: me == 0 && pending && RULE(PENDING_IS_LOADED) -> v = source; printf("@direct %d %d ; instance %d: loads version %d without Redis\n", me, v, me, v); returns(v, need); goto done
       :: else -> v = value; printf("@read %d %d ; instance %d: GET: version %d\n", me, v, me, v); state()
       fi
     };
     if
     :: v != 0 && RULE(READ_IS_NOT_JOINED) -> returns(v, need); goto done
     :: v != 0 && !RULE(READ_IS_NOT_JOINED) -> returns(v, floor); goto done /* to a call that began after it */
     :: else
     fi;
ask:
     atomic {
       acquire(t);
       loading[t] = 1;
       if
       :: reply == LEASE ->
          loading[t] = 2; got[t] = answer * (COPIES > 0);
          if :: !right[t] -> right[t] = true; rightful++ :: else fi;
          untouched = untouched | (1 << t)
       :: else
       fi;
       g = answer;
       printf("@acquire %d %d %e %d ; instance %d: acquire.lua with token %d: %e %d\n", me, t, reply, answer, me, t, reply, answer); state();
       if
       :: reply == VALUE -> returns(answer, need); goto done
       :: reply == FAILED -> goto done /* with the error */
       :: reply == HELD -> goto wait
       :: reply == LEASE
       fi
     };
     atomic { v = source; printf("@load %d %d ; instance %d: its loader reads version %d\n", me, v, me, v) };
     if
     :: atomic {
          filled[t] = v * (COPIES > 0); fill(t, g, v); loading[t] = 3;
          printf("@fill %d %d %d %d %e ; instance %d: fill.lua with generation %d and version %d: %e\n", me, t, g, v, reply, me, g, v, reply); state();
          returns(v, need);
          if
          :: reply == STORED || !RULE(JOINED_NEEDS_STORED) -> returns(v, floor) /* for those that joined before the fill was sent */
          :: else
          fi
        };
        if
        :: !RULE(JOINED_BEFORE_FILL) -> returns(v, floor) /* after it was sent */
        :: else
        fi
     :: atomic { !FEW -> released[t] = COPIES > 0; release(t); loading[t] = 3; printf("@release %d %d ; instance %d: nobody waits any more: release.lua\n", me, t, me); state() }
     :: atomic { !FEW -> released[t] = 2 * (COPIES > 0); fail(t); loading[t] = 3; printf("@fail %d %d ; instance %d: its loader fails: fail.lua\n", me, t, me); state() }
     :: atomic { crashes < CRASHES -> crashes++; loading[t] = 4; printf("@crash %d ; instance %d dies\n", me, me) }; break
     fi;
     goto done;
wait:
     atomic {
       if
       :: mail[me]?reply, answer, v -> printf("@hear %d %e %d ; instance %d: hears %e about generation %d\n", me, reply, answer, me, reply, answer);
          if
          :: reply == PUSH && (answer == g || !RULE(MESSAGE_NAMES_GENERATION)) ->
             returns(v, need);
             if :: !RULE(LATE_ASK_AGAIN) -> returns(v, floor) :: else fi; /* to those that began after acquire.lua was sent */
             goto done
          :: reply == FAILURE && answer == g -> goto done
          :: else -> goto ask
          fi
       :: empty(mail[me]) && RULE(TIMER) && TIMERS && (gen != g || !stands || token == 0) -> printf("@due %d ; instance %d: the lease that it waits for would end now\n", me, me); goto ask
       fi
     };
done: skip; d_step { need = 0; answer = 0; g = 0; v = 0; t = 0; reply = 0 }
  od;
  running--
}

proctype Writer() {
  byte me, w, before;
  mtype reply;
  byte answer, writes;
  do
  :: writes == WRITES -> break
  :: writes < WRITES ->
     writes++;
     atomic { source++; before = source; printf("@commit %d ; the writer commits version %d\n", source, source) };
     if
     :: FAILED_WRITES > 0 ->
        atomic { pending = true; own_floor = before; printf("@pending ; Invalidate returns an error\n") };
        atomic { invalidate(); floor = before; pending = false; printf("@invalidate ; the Guard sends invalidate.lua again\n"); state() }
     :: atomic { invalidate(); floor = before; printf("@invalidate ; the writer: invalidate.lua; nobody may see what is older than version %d\n", floor); state() }
     fi
  od;
  written = true
}

/* What the network and Redis do by themselves. */
proctype Trouble() {
  byte me, w, c, answer;
  mtype reply;
  do
  :: atomic { running == 0 && written -> break }
  :: atomic { copies < COPIES -> copies++; c = 1; do :: c < LOADS - 1 -> c++ :: break od;
       if
       :: loading[c] >= 1 -> me = (c - 1) / GETS; acquire(c);
          /* nobody reads the answer: if it was granted, there is no load behind it */
          printf("@late_acquire %d ; a late copy of acquire.lua with token %d\n", c, c); state()
       :: loading[c] == 3 && filled[c] != 0 -> fill(c, got[c], filled[c]); printf("@late_fill %d ; a late copy of fill.lua with token %d\n", c, c); state()
       :: loading[c] == 3 && released[c] == 1 -> release(c); printf("@late_release %d ; a late copy of release.lua with token %d\n", c, c); state()
       :: loading[c] == 3 && released[c] == 2 -> fail(c); printf("@late_fail %d ; a late copy of fail.lua with token %d\n", c, c); state()
       :: source > 1 -> invalidate(); printf("@late_invalidate ; a late copy of invalidate.lua\n"); state()
       fi; c = 0; me = 0
     }
  :: atomic { losses < LOSSES && gen != 0 -> losses++; strip();
       if
       :: stands -> stands = false; printf("@expire ; the lease's deadline is over\n"); state()
       :: no_lease(); printf("@evict ; Redis evicts the lease\n"); state()
       fi }
  :: atomic { (gen != 0 && stands && (failed || token != 0 && loading[token] != 2)) -> /* nobody renews it */
       strip(); stands = false; printf("@expire ; the lease's deadline is over\n"); state() }
  :: atomic { losses < LOSSES && value != 0 -> losses++; value = 0; printf("@evict_value ; Redis evicts the value\n"); state() }
  od
}

init {
  byte i;
  atomic {
    running = INSTANCES;
    do :: i < INSTANCES -> run Instance(i); i++ :: else -> break od;
    run Writer(); run Trouble()
  }
}
