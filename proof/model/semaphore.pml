/*
 * A semaphore: permits with leases of their own, the queue, grants, a pause, a death, leaving, and late copies.
 */

/* holds: three callers for two permits, and nothing but messages to wake them | -DCALLERS=3 -DTIMERS=0 */
/* holds: three callers for one permit, one of which dies | -DCALLERS=3 -DPERMITS=1 -DDEATHS=1 */
/* holds: three callers for two permits, one of which is paused | -DCALLERS=3 -DPAUSES=1 */
/* holds: three callers, one of which gives up, and a late copy | -DCALLERS=3 -DLEAVES=1 -DCOPIES=1 */
/* holds: instances that know of one and of two permits | -DCALLERS=3 -DFEWER=1 -DTIMERS=0 */
/* ends: three callers for two permits | -DCALLERS=3 -DTIMERS=0 */
/* large: four callers for two permits, one of which is paused, and a late copy | -DCALLERS=4 -DPAUSES=1 -DCOPIES=1 */
#include "common.h"

#ifndef CALLERS
#define CALLERS 3
#endif
#ifndef PERMITS
#define PERMITS 2
#endif
#ifndef FEWER
#define FEWER 0         /* so many fewer permits does the first caller know of */
#endif
#ifndef DEATHS
#define DEATHS 0
#endif
#ifndef PAUSES
#define PAUSES 0
#endif
#ifndef LEAVES
#define LEAVES 0
#endif
#ifndef COPIES
#define COPIES 0
#endif

/*
 * The rules of the protocol. Each is left out in turn, within those bounds, and must be missed.
 */
#define COUNTED 1           /* rule: a permit is given when fewer are held than there are | -DCALLERS=3 */
#define NOBODY_OVERTAKES 2  /* rule: and nobody waits | -DCALLERS=3 -DFEWER=1 */
#define IN_ORDER 3          /* rule: the first that waits gets the next | -DCALLERS=3 -DPERMITS=1 -DTIMERS=0 */
#define RELEASE_HANDS_ON 4  /* rule: a release hands its permit on | -DCALLERS=3 -DTIMERS=0 */
#define RELEASE_CHECKS 5    /* rule: and only the one that its token holds | -DCALLERS=3 -DPERMITS=1 -DPAUSES=1 */
#define GRANTS_ARE_TOLD 6   /* rule: who is granted a permit is told | -DCALLERS=3 -DTIMERS=0 */
#define MESSAGE_HAS_TICKET 7 /* rule: a message about an earlier place in the queue does not count | -DCALLERS=3 -DPERMITS=1 -DPAUSES=1 */
#define LEASES_END 8        /* rule: a lease ends when nobody renews it | -DCALLERS=2 -DPERMITS=1 -DDEATHS=1 */
#define DEAD_LEAVE 9        /* rule: a waiter that counts as dead loses its place | -DCALLERS=3 -DPERMITS=1 -DPAUSES=1 */
#define LEAVE_IS_SAID 10    /* rule: who gives up says so | -DCALLERS=2 -DPERMITS=1 -DLEAVES=1 */
#define GONE_ARE_REFUSED 11 /* rule: who has given up is refused when a request comes late | -DCALLERS=2 -DPERMITS=1 -DCOPIES=1 */
#define OWN_NUMBER 12       /* rule: who waits gets a permit by the number that it knows of | -DCALLERS=3 -DFEWER=1 -DTIMERS=0 */

/* Redis. */
byte holders, stand, ticket;     /* those that hold, and those whose leases have not ended, as bits */
byte place[CALLERS];
byte dead, gone;
chan queue = [CALLERS] of { byte };
chan mail[CALLERS] = [3] of { byte };

byte working, count, paused, left, asked;
byte served, deaths, pauses, leaves, copies, busy;

inline state() { printf("# holders %d queue %d gone %d\n", holders, len(queue), gone) }

#define permits(id) (id == 0 && RULE(OWN_NUMBER) -> PERMITS - FEWER : PERMITS)

inline held() {
  c = 0; n = 0;
  do :: n < CALLERS -> c = c + ((holders >> n) & 1); n++ :: else -> break od;
  n = 0
}

inline hold(id) {
  held();
  assert(c < (id == 0 -> PERMITS - FEWER : PERMITS)); /* never more holders than the caller's number of permits */
  holders = holders | (1 << id); stand = stand | (1 << id)
}

/* expire in the prelude */
inline expire() {
  holders = holders & stand;
  n = 0;
  do
  :: n < CALLERS ->
     if
     :: dead & (1 << n) && RULE(DEAD_LEAVE) -> dead = dead & ~(1 << n);
        if :: queue??[eval(n)] -> queue??eval(n) :: else fi
     :: else
     fi; n++
  :: else -> break
  od;
  n = 0
}

/* hand_on in the prelude */
inline hand_on() {
  do
  :: len(queue) == 0 -> break
  :: len(queue) > 0 ->
     held();
     queue?<n>;
     if
     :: c >= permits(n) -> n = 0; break
     :: c < permits(n) ->
        if :: RULE(IN_ORDER) || len(queue) == 1 -> queue?n :: !RULE(IN_ORDER) && len(queue) > 1 -> queue?n; queue!n; queue?n fi;
        assert(!(dead & (1 << n))); /* no permit is handed to a waiter that counts as dead */
        assert(place[n] > served); served = place[n]; /* first come, first served */
        x = n; hold(x);
        if
        :: RULE(GRANTS_ARE_TOLD) && nfull(mail[x]) -> mail[x]!place[x]
        :: !RULE(GRANTS_ARE_TOLD) || full(mail[x])
        fi; x = 0
     fi
  od;
  c = 0
}

/* acquire.lua: answer 1 held, 0 queued */
inline acquire(id) {
  expire(); hand_on();
  held();
  answer = 0;
  if
  :: gone & (1 << id) && RULE(GONE_ARE_REFUSED) -> skip
  :: else ->
     if
     :: holders & (1 << id) -> answer = 1
     :: !(holders & (1 << id)) && (c < permits(id) || !RULE(COUNTED)) && (len(queue) == 0 || !RULE(NOBODY_OVERTAKES)) ->
        assert(len(queue) == 0); /* nobody overtakes those that wait */
        hold(id); answer = 1
     :: else -> if :: !queue??[eval(id)] -> queue!id; ticket++; place[id] = ticket :: else fi
     fi
  fi;
  c = 0
}

/* release.lua */
inline release(id) {
  answer = 1;
  if
  :: holders & (1 << id) -> holders = holders & ~(1 << id); stand = stand & ~(1 << id); expire()
  :: else ->
     expire();
     if
     :: queue??[eval(id)] -> queue??eval(id)
     :: else -> answer = 0; if :: !RULE(RELEASE_CHECKS) -> holders = 0 :: else fi
     fi
  fi;
  if :: RULE(RELEASE_HANDS_ON) -> hand_on() :: else fi
}

#define holding(id) (holders & (1 << id) && stand & (1 << id))

proctype Caller(byte me) {
  byte answer, n, t, c, x;
ask:
  atomic {
    acquire(me); asked = asked | (1 << me); paused = paused & ~(1 << me);
    printf("@acquire %d %d ; caller %d: acquire.lua: %d\n", me, answer, me, answer); state();
    if :: answer -> goto work :: else fi
  };
  do
  :: atomic { mail[me]?t ->
       printf("@hear %d %d ; caller %d hears of a grant for ticket %d\n", me, t, me, t);
       if
       :: (t == place[me] || !RULE(MESSAGE_HAS_TICKET)) && !(paused & (1 << me)) -> goto work
       :: else -> goto ask
       fi }
  :: atomic { TIMERS && (empty(mail[me]) || paused & (1 << me)) && (holding(me) || (holders & ~stand) || !queue??[eval(me)] || dead != 0 && RULE(DEAD_LEAVE)) ->
       printf("@due %d ; caller %d asks again\n", me, me); goto ask }
  :: atomic { leaves < LEAVES -> leaves++;
       if
       :: RULE(LEAVE_IS_SAID) -> gone = gone | (1 << me); release(me)
       :: else
       fi;
       printf("@leave %d ; caller %d gives up: release.lua\n", me, me); state(); goto out }
  od;
work:
  atomic {
    printf("@work %d ; caller %d works\n", me, me);
    if
    :: holding(me) -> working = working | (1 << me); count++; assert(count <= PERMITS) /* never more than there are permits */
    :: else -> assert(paused & (1 << me)) /* who works has a permit, unless it was paused */
    fi
  };
  if
  :: atomic { deaths < DEATHS -> deaths++; count = count - ((working >> me) & 1); working = working & ~(1 << me); printf("@die %d ; caller %d dies\n", me, me); goto out }
  :: skip
  fi;
  atomic {
    t = working & (1 << me); count = count - ((working >> me) & 1); working = working & ~(1 << me);
    gone = gone | (COPIES > 0 -> 1 << me : 0);
    release(me);
    printf("@release %d %d ; caller %d: release.lua: %d\n", me, answer, me, answer); state();
    assert(t == 0 || answer == 1) /* a release in time finds its permit */
  };
out: left = left | (1 << me); busy--
}

inline pause(i) {
  pauses++; paused = paused | (1 << i);
  if
  :: holders & (1 << i) -> stand = stand & ~(1 << i); count = count - ((working >> i) & 1); working = working & ~(1 << i)
  :: else -> dead = dead | (1 << i)
  fi;
  printf("@pause %d ; caller %d is paused, and its lease or its place ends\n", i, i)
}

#define pausable(i) (pauses < PAUSES && (holding(i) || queue??[eval(i)]))
#define orphan(i) (holding(i) && left & (1 << i) && RULE(LEASES_END))

proctype Trouble() {
  byte answer, n, c, x;
  do
  :: atomic { busy == 0 -> assert(deaths > 0 || pauses > 0 || holders == 0); /* nobody who has left has a permit */ break }
  :: atomic { pausable(0) -> pause(0) }
  :: atomic { pausable(1) -> pause(1) }
  :: atomic { orphan(0) -> stand = stand & ~1; printf("@expire 0 ; a lease that nobody renews ends\n") }
  :: atomic { orphan(1) -> stand = stand & ~2; printf("@expire 1 ; a lease that nobody renews ends\n") }
  :: atomic { orphan((CALLERS - 1)) -> stand = stand & ~(1 << (CALLERS - 1)); printf("@expire %d ; a lease that nobody renews ends\n", CALLERS - 1) }
  :: atomic { copies < COPIES && asked & 1 -> copies++;
       if
       :: acquire(0); printf("@late_acquire 0 ; a late copy of acquire.lua of caller 0\n"); state()
       :: left & gone & 1 -> release(0); printf("@late_release 0 ; a late copy of its release.lua\n"); state()
       fi }
  od
}

init {
  byte i;
  atomic { busy = CALLERS; do :: i < CALLERS -> run Caller(i); i++ :: else -> break od; run Trouble() }
}
