/*
 * A mutex: the queue, direct hand-over, leases, grants that are short, messages, callers that give up, and late copies.
 */

/* holds: three callers | -DCALLERS=3 */
/* holds: three callers, one of which may give up | -DCALLERS=3 -DLEAVES=1 */
/* holds: a lease that ends while its holder is paused, and a message that is lost | -DCALLERS=3 -DPAUSES=1 -DLOST=1 */
/* holds: a late copy | -DCALLERS=2 -DCOPIES=1 -DLEAVES=1 */
/* holds: three callers, one of which dies | -DCALLERS=3 -DDEATHS=1 */
/* holds: three callers, and nothing but messages to wake them | -DCALLERS=3 -DTIMERS=0 */
/* ends: three callers | -DCALLERS=3 -DTIMERS=0 */
/* large: three callers, a pause and a late copy | -DCALLERS=3 -DPAUSES=1 -DCOPIES=1 -DLEAVES=1 */
#include "common.h"

#ifndef CALLERS
#define CALLERS 2
#endif
#ifndef LEAVES
#define LEAVES 0        /* callers that give up */
#endif
#ifndef PAUSES
#define PAUSES 0        /* leases that end though their holder lives, and waiters that count as dead */
#endif
#ifndef DEATHS
#define DEATHS 0        /* callers that die with the lock */
#endif
#ifndef LOST
#define LOST 0
#endif
#ifndef COPIES
#define COPIES 0
#endif

/*
 * The rules of the protocol. Each is left out in turn, within those bounds, and must be missed.
 */
#define ONE_HOLDER 1        /* rule: who finds the lock held does not get it | -DCALLERS=2 */
#define QUEUE_IS_SERVED 2   /* rule: an unlock gives the lock to the first that waits | -DCALLERS=2 -DTIMERS=0 */
#define FIRST_COME 3        /* rule: to the first, and to no other | -DCALLERS=3 -DTIMERS=0 */
#define UNLOCK_CHECKS 4     /* rule: an unlock frees only what its id holds | -DCALLERS=2 -DPAUSES=1 */
#define RENEW_CHECKS 5      /* rule: a renewal extends only what its id holds | -DCALLERS=2 -DPAUSES=1 */
#define GRANT_IS_TOLD 6     /* rule: who is granted the lock is told | -DCALLERS=2 -DTIMERS=0 */
#define DEAD_ARE_SKIPPED 7  /* rule: a waiter that counts as dead is skipped | -DCALLERS=3 -DPAUSES=1 */
#define FENCE_GROWS 8       /* rule: the fence grows with each grant | -DCALLERS=2 */
#define MESSAGE_HAS_FENCE 9 /* rule: a message of an older grant does not count | -DCALLERS=3 -DPAUSES=1 */
#define LEAVE_IS_SAID 10    /* rule: who gives up says so | -DCALLERS=2 -DLEAVES=1 */
#define GONE_ARE_REFUSED 11 /* rule: who has given up is refused when a request comes late | -DCALLERS=2 -DLEAVES=1 -DCOPIES=1 */
#define LAST_IS_KNOWN 12    /* rule: the lock remembers who gave it up last | -DCALLERS=2 -DCOPIES=1 */
#define EXPIRES 13          /* rule: a lease ends when nobody renews it | -DCALLERS=2 -DDEATHS=1 */
#define ASK_AGAIN 14        /* rule: a waiter asks again, which finds a grant whose message was lost | -DCALLERS=2 -DLOST=1 */

#define FREE 255

/* Redis: the lock's hash, and its queue. */
byte token = FREE, fence;
bool stands;                    /* the lease has not ended */
byte last = FREE;               /* who gave it up last */
byte gone;                      /* ids that have given up, as bits */
byte dead;                      /* waiters that have not asked for longer than their grace, as bits */
chan queue = [CALLERS] of { byte };

chan mail[CALLERS] = [2] of { byte }; /* the fence of the grant */

byte trusts;                    /* callers that work, and may, as bits */
byte newest;                    /* fence that anybody worked with */
byte leaves, deaths, pauses, losses, copies, busy;
byte asked, left;               /* as bits: those that have asked, and that are through */
byte paused;                    /* callers that were paused, and have not asked since */
byte ticket[CALLERS], tickets, served;

inline state() { printf("# token %d fence %d stands %d queue %d gone %d last %d\n", token, fence, stands, len(queue), gone, last) }

inline give(id) {
  if :: RULE(FENCE_GROWS) || fence == 0 -> fence++ :: else fi;
  token = id; stands = true
}

/* To the first that is alive; the others leave the queue. */
inline promote() {
  do
  :: len(queue) == 0 -> token = FREE; stands = false; break
  :: len(queue) > 0 ->
     if
     :: RULE(FIRST_COME) || len(queue) == 1 -> queue?n
     :: else -> queue?n; queue!n; queue?n
     fi;
     if
     :: (dead & (1 << n)) && RULE(DEAD_ARE_SKIPPED) -> dead = dead & ~(1 << n)
     :: else ->
        assert(!(dead & (1 << n))); /* the lock is not handed to a waiter that counts as dead */
        give(n);
        assert(ticket[n] > served); /* first come, first served */
        served = ticket[n];
        if
        :: losses < LOST -> losses++
        :: RULE(GRANT_IS_TOLD) && nfull(mail[n]) -> mail[n]!fence
        :: !RULE(GRANT_IS_TOLD) || full(mail[n])
        fi;
        break
     fi
  od;
  n = 0
}

/* lock.lua: answer 1 held, 0 queued */
inline lock(id) {
  dead = dead & ~(1 << id);
  if
  :: (gone & (1 << id)) && RULE(GONE_ARE_REFUSED) -> answer = 0
  :: !((gone & (1 << id)) && RULE(GONE_ARE_REFUSED)) && token == id -> stands = true; answer = 1 /* also when its lease has ended, and nobody came since */
  :: !((gone & (1 << id)) && RULE(GONE_ARE_REFUSED)) && token != id ->
     if
     :: token == FREE && len(queue) == 0 || !RULE(ONE_HOLDER) -> give(id); answer = 1
     :: else ->
        if :: !queue??[eval(id)] -> queue!id; tickets++; ticket[id] = tickets :: else fi;
        answer = 0;
        if
        :: token == FREE || !stands -> promote(); answer = (token == id -> 1 : 0)
        :: else
        fi
     fi
  fi
}

/* unlock.lua: answer 1 given up, 0 not held */
inline unlock(id) {
  if
  :: token == id || !RULE(UNLOCK_CHECKS) && token != FREE ->
     last = id;
     if :: RULE(QUEUE_IS_SERVED) -> promote() :: else -> token = FREE; stands = false fi;
     answer = 1
  :: else ->
     if :: queue??[eval(id)] -> queue??eval(id); answer = 0 :: else -> answer = (last == id && RULE(LAST_IS_KNOWN)) fi
  fi
}

/* A caller has an id of its own, and locks once. */
proctype Caller(byte me) {
  byte answer, n, mine, seen;
ask:
  atomic {
    lock(me); asked = asked | (1 << me); seen = fence; paused = paused & ~(1 << me);
    printf("@lock %d %d %d ; caller %d: lock.lua: %d, fence %d\n", me, answer, fence, me, answer, fence); state();
    if :: answer == 1 -> mine = fence; goto work :: else fi
  };
  do
  :: atomic { mail[me]?n ->
       printf("@hear %d %d ; caller %d hears of a grant with fence %d\n", me, n, me, n);
       if
       :: (n > seen || !RULE(MESSAGE_HAS_FENCE)) && !(paused & (1 << me)) -> mine = n; goto work
       :: else -> goto ask
       fi }
  :: atomic { TIMERS && RULE(ASK_AGAIN) && (token == me || !stands || !queue??[eval(me)]) && (empty(mail[me]) || paused & (1 << me)) ->
       printf("@due %d ; caller %d asks again\n", me, me); goto ask }
  :: atomic { leaves < LEAVES -> leaves++;
       if
       :: RULE(LEAVE_IS_SAID) -> gone = gone | (COPIES > 0 -> 1 << me : 0); unlock(me)
       :: else
       fi;
       printf("@leave %d ; caller %d gives up: unlock.lua\n", me, me); state(); goto out }
  od;
work:
  atomic {
    printf("@work %d %d ; caller %d works with fence %d\n", me, mine, me, mine);
    if
    :: token == me && stands ->
       assert(trusts == 0); /* one holder at a time */
       assert(mine > newest); /* fences grow */
       newest = mine; trusts = trusts | (1 << me)
    :: else -> assert(paused & (1 << me)) /* who works has the lock, unless it was paused */
    fi
  };
  if
  :: atomic { !RULE(RENEW_CHECKS) && token != me && token != FREE -> stands = true; token = me; printf("@renew %d ; caller %d: renew.lua\n", me, me) }
  :: atomic { deaths < DEATHS -> deaths++; trusts = trusts & ~(1 << me); printf("@die %d ; caller %d dies\n", me, me); goto out }
  :: skip
  fi;
  atomic {
    n = trusts & (1 << me); trusts = trusts & ~(1 << me);
    gone = gone | (COPIES > 0 -> 1 << me : 0);
    unlock(me);
    printf("@unlock %d %d ; caller %d: unlock.lua: %d\n", me, answer, me, answer); state();
    assert(n == 0 || answer == 1) /* an unlock in time finds the lock */
  };
out: left = left | (1 << me); busy--
}

proctype Trouble() {
  byte answer, n;
  do
  :: atomic { busy == 0 ->
       assert(token == FREE || !stands || pauses > 0 || deaths > 0); /* nobody who has left has the lock */
       break }
  :: atomic { pauses < PAUSES && token != FREE && stands -> pauses++;
       trusts = trusts & ~(1 << token); /* its own clock ends its context before that */
       paused = paused | (1 << token); stands = false; printf("@expire %d ; caller %d is paused, and its lease ends\n", token, token); state() }
  :: atomic { pauses < PAUSES && len(queue) > 0 -> pauses++; queue?<n>; dead = dead | (1 << n); paused = paused | (1 << n); printf("@dead %d ; caller %d is paused, and counts as dead\n", n, n); n = 0 }
  :: atomic { token != FREE && stands && (left & (1 << token)) && RULE(EXPIRES) -> stands = false; printf("@expire %d ; a lease that nobody renews ends\n", token); state() }
  :: atomic { token != FREE && stands && !(trusts & (1 << token)) && (paused & (1 << token)) && RULE(EXPIRES) -> stands = false; printf("@expire %d ; a grant that is not confirmed ends\n", token); state() }
  :: atomic { copies < COPIES && (asked & 1) -> copies++;
       if
       :: lock(0); printf("@late_lock 0 ; a late copy of caller 0's lock.lua\n"); state()
       :: (left & gone & 1) -> unlock(0);
          printf("@late_unlock 0 %d ; a late copy of its unlock.lua: %d\n", answer, answer); state();
          assert(answer == 1 || leaves > 0 || last != 0) /* a second copy of an unlock is not told that the lock was lost */
       fi }
  od
}

init {
  byte i;
  atomic { busy = CALLERS; do :: i < CALLERS -> run Caller(i); i++ :: else -> break od; run Trouble() }
}
