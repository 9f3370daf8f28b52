/*
 * A read-write lock: leases of their own, the queue, phases, grants, a pause, a death, leaving, downgrade and upgrade, and late copies.
 */

/* holds: two writers and two readers, and nothing but messages to wake them | -DTIMERS=0 */
/* holds: a writer and two readers, one of which dies | -DWRITERS=1 -DDEATHS=1 */
/* holds: two writers and a reader, of which one is paused | -DREADERS=1 -DPAUSES=1 */
/* holds: two writers and a reader, one of which gives up, and a late copy | -DREADERS=1 -DLEAVES=1 -DCOPIES=1 */
/* holds: a writer that goes on as a reader, and a reader that goes on as a writer | -DREADERS=1 -DCHANGES=1 -DTIMERS=0 */
/* holds: a writer that goes on as a reader and as a writer again, and a late copy | -DWRITERS=1 -DREADERS=1 -DCHANGES=1 -DCOPIES=1 */
/* ends: two writers and a reader | -DREADERS=1 -DTIMERS=0 */
/* large: two writers and two readers, of which one is paused | -DPAUSES=1 */
/* large: three writers and two readers | -DWRITERS=3 -DTIMERS=0 */
#include "common.h"

#ifndef WRITERS
#define WRITERS 2
#endif
#ifndef READERS
#define READERS 2
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
#ifndef CHANGES
#define CHANGES 0       /* 1: writers may downgrade, and readers upgrade */
#endif

#define CALLERS (WRITERS + READERS)
#define NONE 255

/*
 * The rules of the protocol. Each is left out in turn, within those bounds, and must be missed.
 */
#define WRITER_ALONE 1      /* rule: a writer gets the lock only when nobody reads | -DWRITERS=1 -DREADERS=1 */
#define READERS_WAIT 2      /* rule: a reader does not get the lock while a writer has it | -DWRITERS=1 -DREADERS=1 */
#define READERS_QUEUE 3     /* rule: nor while a writer waits | -DWRITERS=1 -DREADERS=2 */
#define READERS_NEXT 4      /* rule: when a writer has left, all readers that wait get the lock, before the next writer | -DTIMERS=0 */
#define WRITERS_ARE_SERVED 5 /* rule: when nobody holds it, the first writer gets it | -DTIMERS=0 */
#define WRITERS_IN_ORDER 6  /* rule: the first, and no other | -DWRITERS=3 -DREADERS=0 -DTIMERS=0 */
#define LEASE_EACH 7        /* rule: each reader has a lease of its own | -DWRITERS=1 -DPAUSES=1 */
#define LEASES_END 8        /* rule: a lease ends when nobody renews it | -DWRITERS=1 -DREADERS=1 -DDEATHS=1 */
#define RELEASE_HANDS_ON 9  /* rule: a release hands the lock on | -DTIMERS=0 */
#define RELEASE_CHECKS 10   /* rule: and frees only what the token holds | -DREADERS=0 -DPAUSES=1 */
#define GRANTS_ARE_TOLD 11  /* rule: who is granted the lock is told | -DTIMERS=0 */
#define MESSAGE_HAS_TICKET 12 /* rule: a message about an earlier place in the queue does not count | -DREADERS=0 -DWRITERS=3 -DPAUSES=1 */
#define FENCE_GROWS 13      /* rule: each writer gets a larger fence | -DREADERS=0 */
#define DEAD_LEAVE 14       /* rule: a waiter that counts as dead loses its place | -DREADERS=0 -DPAUSES=1 -DWRITERS=3 */
#define LEAVE_IS_SAID 15    /* rule: who gives up says so | -DREADERS=0 -DLEAVES=1 */
#define GONE_ARE_REFUSED 16 /* rule: who has given up is refused when a request comes late | -DREADERS=0 -DLEAVES=1 -DCOPIES=1 */
#define UPGRADE_ALONE 17    /* rule: a reader becomes the writer only if it reads alone | -DWRITERS=1 -DREADERS=2 -DCHANGES=1 */
#define UPGRADE_YIELDS 18   /* rule: and no writer waits | -DWRITERS=1 -DREADERS=1 -DCHANGES=1 */
#define DOWNGRADE_ADMITS 19 /* rule: a writer that goes on as a reader admits those that wait to read | -DWRITERS=2 -DREADERS=1 -DCHANGES=1 -DTIMERS=0 */
#define CHANGE_HAS_FENCE 20 /* rule: a downgrade names the fence that it is from | -DWRITERS=1 -DREADERS=1 -DCHANGES=1 -DCOPIES=1 */

/* Redis. */
byte writer = NONE;
byte readers, stand;             /* those that read, and those whose leases have not ended, as bits */
byte fence, ticket;
byte waiting;                    /* readers that wait, as bits */
byte place[CALLERS];             /* the ticket of each that waits */
byte dead, gone;
chan writers = [CALLERS] of { byte };
chan mail[CALLERS] = [3] of { byte, byte }; /* ticket, fence */

byte working, reading;           /* callers that work, and may, as bits */
byte paused, left, asked, owes;  /* owes: readers that have seen a writer begin since they queued */
byte newest, served, downgraded, last_fence[CALLERS];
byte deaths, pauses, leaves, copies, busy;
bool ended, wrote;

inline state() { printf("# writer %d readers %d fence %d writers %d waiting %d gone %d\n", writer, readers, fence, len(writers), waiting, gone) }

inline tell(id) {
  if
  :: RULE(GRANTS_ARE_TOLD) && nfull(mail[id]) -> mail[id]!place[id], fence
  :: !RULE(GRANTS_ARE_TOLD) || full(mail[id])
  fi
}

inline hold_write(id) {
  if :: RULE(FENCE_GROWS) -> fence++ :: else fi;
  writer = id; stand = stand | (1 << id); last_fence[id] = fence;
  assert(!(waiting & owes)); /* a reader waits for one writer at most */
  owes = owes | waiting
}

inline admit() {
  n = 0;
  do
  :: n < CALLERS ->
     if
     :: waiting & (1 << n) -> readers = readers | (1 << n); stand = stand | (1 << n); last_fence[n] = fence; tell(n)
     :: else
     fi; n++
  :: else -> break
  od;
  waiting = 0; owes = 0; n = 0
}

/* hand_on in the prelude */
inline hand_on() {
  if
  :: writer == NONE ->
     if
     :: waiting != 0 && (ended && RULE(READERS_NEXT) || len(writers) == 0) -> admit()
     :: else
     fi;
     if
     :: (readers == 0 || !RULE(WRITER_ALONE)) && len(writers) > 0 && RULE(WRITERS_ARE_SERVED) ->
        if :: RULE(WRITERS_IN_ORDER) || len(writers) == 1 -> writers?n :: else -> writers?n; writers!n; writers?n fi;
        assert(!(dead & (1 << n))); /* the lock is not handed to a waiter that counts as dead */
        assert(place[n] > served); served = place[n]; /* writers come in the order of their tickets */
        hold_write(n); tell(n); n = 0
     :: else
     fi
  :: else
  fi;
  ended = false
}

/* expire in the prelude */
inline expire() {
  if :: writer != NONE && !(stand & (1 << writer)) -> writer = NONE; ended = true :: else fi;
  if :: RULE(LEASE_EACH) -> readers = readers & stand :: else -> readers = ((readers & stand) == readers -> readers : 0) fi;
  n = 0;
  do
  :: n < CALLERS && RULE(DEAD_LEAVE) ->
     if
     :: dead & (1 << n) -> dead = dead & ~(1 << n); waiting = waiting & ~(1 << n); owes = owes & ~(1 << n);
        if :: writers??[eval(n)] -> writers??eval(n) :: else fi
     :: else
     fi; n++
  :: else -> break
  od;
  n = 0
}

#define is_writer(id) (id < WRITERS)

/* acquire.lua: answer 1 held, 0 queued */
inline acquire(id) {
  expire(); hand_on();
  if :: !RULE(DEAD_LEAVE) -> dead = dead & ~(1 << id) :: else fi;
  answer = 0;
  if
  :: (gone & (1 << id)) && RULE(GONE_ARE_REFUSED) -> skip
  :: else ->
     if
     :: writer == id || readers & (1 << id) -> answer = 1
     :: writer != id && !(readers & (1 << id)) && is_writer(id) && (writer == NONE && (readers == 0 || !RULE(WRITER_ALONE)) && len(writers) == 0) -> hold_write(id); answer = 1
     :: writer != id && !(readers & (1 << id)) && !is_writer(id) && (writer == NONE || !RULE(READERS_WAIT)) && (len(writers) == 0 || !RULE(READERS_QUEUE)) ->
        assert(len(writers) == 0); /* a reader does not overtake a writer that waits */
        readers = readers | (1 << id); stand = stand | (1 << id); last_fence[id] = fence; answer = 1
     :: else ->
        if
        :: is_writer(id) && !writers??[eval(id)] -> writers!id; ticket++; place[id] = ticket
        :: !is_writer(id) && !(waiting & (1 << id)) -> waiting = waiting | (1 << id); ticket++; place[id] = ticket
        :: else
        fi
     fi
  fi
}

/* release.lua */
inline release(id) {
  wrote = (writer == id); /* a writer whose lease was over still had the lock */
  expire();
  answer = 1;
  if
  :: wrote && writer != id && RULE(RELEASE_CHECKS) -> skip
  :: !(wrote && writer != id && RULE(RELEASE_CHECKS)) && (writer == id || !RULE(RELEASE_CHECKS) && writer != NONE) -> writer = NONE; ended = true; stand = stand & ~(1 << id)
  :: !wrote && writer != id && readers & (1 << id) -> readers = readers & ~(1 << id); stand = stand & ~(1 << id)
  :: !wrote && writer != id && !(readers & (1 << id)) && is_writer(id) && writers??[eval(id)] -> writers??eval(id)
  :: !wrote && writer != id && waiting & (1 << id) -> waiting = waiting & ~(1 << id); owes = owes & ~(1 << id)
  :: else -> answer = 0
  fi;
  wrote = false;
  if :: RULE(RELEASE_HANDS_ON) -> hand_on() :: else fi
}

/* downgrade.lua */
inline downgrade(id, f) {
  expire(); hand_on();
  if
  :: writer == id && (fence == f || !RULE(CHANGE_HAS_FENCE)) -> writer = NONE; readers = readers | (1 << id); ended = true;
     if :: RULE(DOWNGRADE_ADMITS) -> hand_on() :: else -> ended = false fi
  :: else
  fi
}

/* upgrade.lua: answer 1 if it has become the writer */
inline upgrade(id) {
  expire(); hand_on();
  answer = 0;
  if
  :: readers & (1 << id) && (readers == 1 << id || !RULE(UPGRADE_ALONE)) && (len(writers) == 0 || !RULE(UPGRADE_YIELDS)) ->
     assert(len(writers) == 0); /* nobody jumps the queue */
     readers = readers & ~(1 << id); hold_write(id); answer = 1
  :: else
  fi
}

#define holds(id) ((writer == id || readers & (1 << id)) && stand & (1 << id))

/* What is so while somebody works, and may. */
inline check(id) {
  if
  :: writer == id ->
     assert(working == 0 && reading == 0); /* a writer is alone */
     assert(last_fence[id] > newest); newest = last_fence[id]; /* fences grow */
     working = 1 << id
  :: else ->
     assert(working == 0); /* nobody reads beside a writer */
     reading = reading | (1 << id)
  fi
}

proctype Caller(byte me) {
  byte answer, n, t, f;
ask:
  atomic {
    acquire(me); asked = asked | (1 << me); paused = paused & ~(1 << me);
    printf("@acquire %d %d ; %c%d: acquire.lua: %d\n", me, answer, (is_writer(me) -> 'w' : 'r'), me, answer); state();
    if :: answer -> goto work :: else fi
  };
  do
  :: atomic { mail[me]?t, f ->
       printf("@hear %d %d ; %c%d hears of a grant for ticket %d\n", me, t, (is_writer(me) -> 'w' : 'r'), me, t);
       if
       :: (t == place[me] || !RULE(MESSAGE_HAS_TICKET)) && !(paused & (1 << me)) -> goto work
       :: else -> goto ask
       fi }
  :: atomic { TIMERS && (empty(mail[me]) || paused & (1 << me)) && (holds(me) || writer != NONE && !(stand & (1 << writer)) || (readers & ~stand) || !(waiting & (1 << me)) && !writers??[eval(me)] || dead & (1 << me) || dead != 0 && RULE(DEAD_LEAVE)) ->
       printf("@due %d ; %c%d asks again\n", me, (is_writer(me) -> 'w' : 'r'), me); goto ask }
  :: atomic { leaves < LEAVES -> leaves++;
       if
       :: RULE(LEAVE_IS_SAID) -> gone = gone | (1 << me); release(me)
       :: else
       fi;
       printf("@leave %d ; %c%d gives up: release.lua\n", me, (is_writer(me) -> 'w' : 'r'), me); state(); goto out }
  od;
work:
  atomic {
    printf("@work %d ; %c%d works\n", me, (is_writer(me) -> 'w' : 'r'), me);
    if
    :: holds(me) -> check(me)
    :: else -> assert(paused & (1 << me)) /* who works has the lock, unless it was paused */
    fi
  };
  if
  :: CHANGES && is_writer(me) ->
     atomic { f = last_fence[me]; working = 0; downgrade(me, f); downgraded = (me == 0 -> f : downgraded); reading = reading | (1 << me); printf("@downgrade %d ; w%d goes on as a reader: downgrade.lua\n", me, me); state();
       assert(len(writers) == 0 || waiting == 0) /* who waited to read has the lock, too */ };
     if
     :: COPIES > 0 -> atomic { reading = reading & ~(1 << me); upgrade(me); check(me); printf("@upgrade %d %d ; w%d asks to go on as a writer: upgrade.lua: %d\n", me, answer, me, answer); state() }
     :: else
     fi
  :: CHANGES && !is_writer(me) ->
     atomic { reading = reading & ~(1 << me); upgrade(me); check(me); printf("@upgrade %d %d ; r%d asks to go on as a writer: upgrade.lua: %d\n", me, answer, me, answer); state() }
  :: atomic { deaths < DEATHS -> deaths++; working = working & ~(1 << me); reading = reading & ~(1 << me); printf("@die %d ; %c%d dies\n", me, (is_writer(me) -> 'w' : 'r'), me); goto out }
  :: skip
  fi;
  atomic {
    n = (working | reading) & (1 << me); t = n; working = working & ~(1 << me); reading = reading & ~(1 << me);
    gone = gone | (COPIES > 0 -> 1 << me : 0);
    release(me);
    printf("@release %d %d ; %c%d: release.lua: %d\n", me, answer, (is_writer(me) -> 'w' : 'r'), me, answer); state();
    assert(t == 0 || answer == 1) /* a release in time finds the lock */
  };
out: left = left | (1 << me); busy--
}

#define has(i) (writer == i || readers & (1 << i))

inline pause(i) {
  pauses++; paused = paused | (1 << i);
  if
  :: has(i) -> stand = stand & ~(1 << i); working = working & ~(1 << i); reading = reading & ~(1 << i)
  :: else -> dead = dead | (1 << i)
  fi;
  printf("@pause %d ; %d is paused, and its lease or its place ends\n", i, i)
}

#define pausable(i) (pauses < PAUSES && i < CALLERS && (has(i) || waiting & (1 << i) || writers??[eval(i)]))
#define orphan(i) (i < CALLERS && has(i) && stand & (1 << i) && left & (1 << i) && RULE(LEASES_END))

proctype Trouble() {
  byte answer, n;
  do
  :: atomic { busy == 0 -> assert(deaths > 0 || pauses > 0 || writer == NONE && readers == 0); /* nobody who has left has the lock */ break }
  :: atomic { pausable(0) -> pause(0) }
  :: atomic { pausable(CALLERS - 1) -> pause((CALLERS - 1)) }
  :: atomic { orphan(0) -> stand = stand & ~1; printf("@expire 0 ; a lease that nobody renews ends\n") }
  :: atomic { orphan((CALLERS - 1)) -> stand = stand & ~(1 << (CALLERS - 1)); printf("@expire %d ; a lease that nobody renews ends\n", CALLERS - 1) }
  :: atomic { orphan(1) -> stand = stand & ~2; printf("@expire 1 ; a lease that nobody renews ends\n") }
  :: atomic { copies < COPIES && asked & 1 -> copies++;
       if
       :: CHANGES && downgraded != 0 -> downgrade(0, downgraded); printf("@late_downgrade 0 ; a late copy of downgrade.lua of w0\n"); state();
          assert(!(working & 1) || writer == 0) /* a late copy takes nothing from a writer */
       :: acquire(0); printf("@late_acquire 0 ; a late copy of acquire.lua of w0\n"); state()
       :: left & gone & 1 -> release(0); printf("@late_release 0 ; a late copy of release.lua of w0\n"); state()
       fi }
  od
}

init {
  byte i;
  atomic { busy = CALLERS; do :: i < CALLERS -> run Caller(i); i++ :: else -> break od; run Trouble() }
}
