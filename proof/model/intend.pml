/*
 * One key, or a tag: the intents of transactions, beside loads, a reader with a local tier, evictions, crashes and late copies.
 * A load stores a value under what stood when it began: a lease for a key, an epoch for a tag. Both end with an intent, so one model serves both:
 * `bound` says that what is there ends with it.
 */

/* holds: a transaction that is done or dies, two loads, a reader | -DLOADS=2 */
/* holds: two transactions, and a load | -DTRANSACTIONS=2 */
/* holds: an intent that Redis evicts, and its renewal | -DLOSSES=1 */
/* holds: late copies | -DCOPIES=2 */
/* ends: a transaction that is done or dies, and a load | -DLOADS=1 */
/* large: two transactions, two loads, a late copy | -DTRANSACTIONS=2 -DLOADS=2 -DCOPIES=1 */
#include "common.h"

#ifndef TRANSACTIONS
#define TRANSACTIONS 1
#endif
#ifndef LOADS
#define LOADS 1
#endif
#ifndef READERS
#define READERS 1
#endif
#ifndef COPIES
#define COPIES 0
#endif
#ifndef LOSSES
#define LOSSES 0
#endif

/*
 * The rules of the protocol. Each is left out in turn, within those bounds, and must be missed.
 */
#define CUTS_VALUES 1     /* rule: an intent gives an end to the value that is there | -DLOADS=1 */
#define MARKS_LEASES 2    /* rule: and a mark to the leases | -DLOADS=1 */
#define FILL_IS_BOUND 3   /* rule: what is stored while an intent stands ends with it | -DLOADS=1 */
#define END_IS_KNOWN 4    /* rule: the end of an intent is known for longer than a TTL can be late | -DTRANSACTIONS=2 -DREADERS=0 */
#define UNKNOWN_REFUSED 5 /* rule: a marked lease stores nothing when no intent is known | -DLOSSES=1 */
#define FIRST_COUNTS 6    /* rule: of several intents, the first to end counts | -DTRANSACTIONS=2 -DREADERS=0 */
#define DONE_REMOVES 7    /* rule: Done removes the value | -DLOADS=1 */
#define DONE_ENDS_LEASE 8 /* rule: and the lease | -DTRANSACTIONS=2 -DREADERS=0 */
#define DONE_KEEPS_OTHERS 9 /* rule: and no other intent | -DTRANSACTIONS=2 -DREADERS=0 */
#define TIERS_ARE_TOLD 10 /* rule: local tiers drop what they have when an intent comes | -DLOADS=1 */
#define TIERS_KEEP_NONE 11 /* rule: and keep nothing that ends with one | -DLOADS=1 */
#define RENEWAL_NEEDS_IT 12 /* rule: a renewal does not bring an intent back | -DLOADS=1 -DCOPIES=1 */
#define RENEWAL_LENGTHENS_NOTHING 13 /* rule: and what was cached ends when it would have | -DLOADS=1 */
#define LEASE_ENDS_TOO 14 /* rule: an intent that expired takes the leases begun under it | -DTRANSACTIONS=2 -DREADERS=0 */

byte source = 1, floor = 1;

/* Redis. */
byte value, gen, serial;
byte until;               /* intents that stand, as bits */
byte over;                /* those that have expired, and are known */
byte ends, mark;          /* with which intents the value, and the lease, end; 0: none. Bit 7: a mark without an intent that is known */
byte tier;                /* of the reader */
byte phase[TRANSACTIONS]; /* 1 stands, 2 done, 3 dead, 4 dead and over; */
byte wrote[TRANSACTIONS];
byte busy, copies, losses;
byte forgotten;           /* intents that were evicted */
bool exempt;              /* a load began between that and the next renewal: nothing is promised of it if the process dies before that */

inline state() {
  printf("# value %d gen %d until %d ends %d mark %d source %d floor %d tier %d\n", value, gen, until, ends, mark, source, floor, tier)
}

inline forget() { value = 0; ends = 0; gen = 0; mark = 0 }

inline promise(v) {
  if :: v > floor -> floor = v :: else fi;
  assert(value == 0 || value >= floor || ends != 0 && ends & late); /* what is cached is not older, but for a TTL that is some ms late */
  assert(tier == 0 || tier >= floor) /* nor is what a local tier has */
}

byte late;                /* intents that are over, and whose TTLs may be some ms late */

/* until.lua: which intent bounds what is made now. It removes what an expired one leaves. */
inline limit(bound) {
  if
  :: over != 0 -> over = 0; if :: RULE(LEASE_ENDS_TOO) -> forget() :: else value = 0; ends = 0 fi
  :: else
  fi;
  bound = (RULE(FIRST_COUNTS) -> until : (until & 2 -> 2 : until))
}

#define may_die(i) (!(forgotten & (1 << i)) || !exempt)

/* intend.lua */
inline intend(i) {
  limit(b);
  until = until | (1 << i);
  if :: value != 0 && RULE(CUTS_VALUES) -> ends = ends | (RULE(FIRST_COUNTS) -> 1 << i : (ends -> 0 : 1 << i)) :: else fi;
  if :: gen != 0 && RULE(MARKS_LEASES) -> mark = mark | (1 << i) :: else fi;
  if :: RULE(TIERS_ARE_TOLD) -> tier = 0; told++ :: else fi
}

byte told;                /* notices to the tier */

/* done.lua */
inline done(i) {
  until = (RULE(DONE_KEEPS_OTHERS) -> until & ~(1 << i) : 0);
  if :: RULE(DONE_REMOVES) -> value = 0; ends = 0 :: else fi;
  if :: RULE(DONE_ENDS_LEASE) -> gen = 0; mark = 0 :: else fi;
  tier = 0; told++
}


proctype Transaction(byte me) {
  byte b, v;
  atomic { intend(me); phase[me] = 1; printf("@intend %d ; transaction %d: intend.lua\n", me, me); state() };
  if
  :: atomic { forgotten & (1 << me) -> forgotten = forgotten & ~(1 << me); intend(me); printf("@again %d ; transaction %d: its renewal finds no intent, and it announces it again\n", me, me); state() }
  :: skip
  fi;
  atomic { source++; v = source; wrote[me] = v; printf("@commit %d %d ; transaction %d commits version %d\n", me, v, me, v) };
  if
  :: atomic { done(me); phase[me] = 2; promise(v); printf("@done %d ; transaction %d: done.lua; nobody may see what is older than version %d\n", me, me, floor); state() }
  :: atomic { may_die(me) -> phase[me] = 3; printf("@crash %d ; transaction %d dies after its commit\n", me, me) }
  fi;
  busy--
}

proctype Load(byte me) {
  byte v, g, b;
  atomic { /* acquire.lua */
    limit(b);
    if
    :: value == 0 && gen == 0 -> serial++; gen = serial; g = gen; mark = b; exempt = exempt || forgotten; printf("@acquire %d %d ; load %d: acquire.lua: lease %d\n", me, g, me, g); state()
    :: else -> goto out
    fi
  };
  atomic { v = source; printf("@load %d %d ; load %d reads version %d\n", me, v, me, v) };
  atomic { /* fill.lua */
    b = 0;
    if :: mark != 0 && gen == g && over == 0 -> limit(b) :: else fi; /* one that has expired is as good as none */
    if
    :: gen != g -> skip
    :: gen == g && mark != 0 && b == 0 && RULE(UNKNOWN_REFUSED) -> gen = 0; mark = 0
    :: gen == g && (mark == 0 || b != 0 || !RULE(UNKNOWN_REFUSED)) ->
       assert(v >= floor); /* never a stale fill */
       value = v; ends = (RULE(FILL_IS_BOUND) -> b : 0); gen = 0; mark = 0
    fi;
    printf("@fill %d %d %d ; load %d: fill.lua with version %d: %d\n", me, v, value, me, v, value == v); state()
  };
out: busy--
}

/* A reader with a local tier. */
proctype Reader() {
  byte v, e, m, need;
  atomic { need = floor; m = told; v = value; e = ends; printf("@read %d ; a reader: GET: version %d\n", v, v) };
  atomic {
    assert(v == 0 || v >= need || e & late); /* read your writes */
    if
    :: v != 0 && m == told && (e == 0 || !RULE(TIERS_KEEP_NONE)) -> tier = v
    :: else
    fi;
    printf("@keep %d ; its local tier has version %d\n", tier, tier); state()
  };
  busy--
}

#define dies(i) (phase[i] == 3 && !(late & (1 << i)))

inline expire(i) {
  if :: RULE(END_IS_KNOWN) && until & (1 << i) -> over = over | (1 << i) :: else fi;
  until = until & ~(1 << i);
  late = late | (1 << i);
  printf("@expire %d ; the intent of transaction %d is over, and TTLs may be some ms late\n", i, i); state()
}

/* The TTLs that end with it are over, too. */
inline drop(i) {
  phase[i] = 4; late = late & ~(1 << i);
  if :: ends & (1 << i) -> value = 0; ends = 0 :: else fi;
  if :: mark & (1 << i) && RULE(LEASE_ENDS_TOO) -> gen = 0; mark = 0 :: else fi;
  promise(wrote[i]);
  printf("@drop %d ; what ends with it is gone; nobody may see what is older than version %d\n", i, floor); state()
}

proctype Trouble() {
  byte b;
  do
  :: atomic { busy == 0 && until == 0 && late == 0 && !dies(0) -> break }
  :: atomic { dies(0) -> expire(0) }
  :: atomic { TRANSACTIONS > 1 && dies(TRANSACTIONS - 1) -> expire(TRANSACTIONS - 1) }
  :: atomic { late & 1 -> drop(0) }
  :: atomic { TRANSACTIONS > 1 && late & (1 << (TRANSACTIONS - 1)) -> drop(TRANSACTIONS - 1) }
  :: atomic { phase[0] == 2 && until & 1 -> until = until & ~1;
       if :: RULE(END_IS_KNOWN) -> over = over | 1 :: else fi;
       if :: ends & 1 -> value = 0; ends = 0 :: else fi;
       if :: mark & 1 && RULE(LEASE_ENDS_TOO) -> gen = 0; mark = 0 :: else fi;
       printf("@gone 0 ; what a late copy left expires\n"); state() }
  :: atomic { losses < LOSSES && until & 1 && phase[0] == 1 -> losses++; forgotten = 1; until = until & ~1; printf("@evict ; Redis evicts the intent\n"); state() }
  :: atomic { phase[0] == 1 && until & 1 && !RULE(RENEWAL_LENGTHENS_NOTHING) -> ends = 0; printf("@renew 0 ; a renewal lengthens what is cached\n"); state() }
  :: atomic { copies < COPIES && phase[0] >= 1 && phase[0] <= 2 -> copies++;
       if
       :: phase[0] == 2 -> done(0); printf("@late_done 0 ; a late copy of done.lua\n"); state()
       :: intend(0); printf("@late_intend 0 ; a late copy of intend.lua\n"); state()
       :: until & 1 || !RULE(RENEWAL_NEEDS_IT) ->
          assert(until & 1 || phase[0] != 2); /* nothing stands after Done but what a late Intend left */
          until = until | 1; printf("@late_renew 0 ; a late copy of renew_intend.lua\n"); state()
       fi }
  od
}

init {
  byte i;
  atomic {
    if :: value = 1; printf("@cached 1 ; a load has stored version 1\n"); state() :: skip fi;
    busy = TRANSACTIONS + LOADS + READERS;
    do :: i < TRANSACTIONS -> run Transaction(i); i++ :: else -> break od;
    i = 0;
    do :: i < LOADS -> run Load(i); i++ :: else -> break od;
    if :: READERS > 0 -> run Reader() :: else fi;
    run Trouble()
  }
}
