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
/* holds: two writes, one of which replaces the value, and a load | -DTRANSACTIONS=2 -DREPLACES=1 */
/* holds: two writes that replace the value, and a load | -DTRANSACTIONS=2 -DREPLACES=2 -DREADERS=0 */
/* holds: one that replaces the value, and late copies | -DREPLACES=1 -DCOPIES=2 */
/* holds: two that replace it, and late copies | -DTRANSACTIONS=2 -DREPLACES=2 -DCOPIES=1 -DREADERS=0 */
/* holds: two writes, one of which replaces the value, while intents and leases are lost | -DTRANSACTIONS=2 -DREPLACES=1 -DLOSSES=1 -DREADERS=0 */
/* holds: two that replace it, while intents and leases are lost | -DTRANSACTIONS=2 -DREPLACES=2 -DLOSSES=1 -DREADERS=0 */
/* ends: two that replace the value, and a load | -DTRANSACTIONS=2 -DREPLACES=2 -DREADERS=0 */
/* large: two that replace the value, a load, a reader, a late copy | -DTRANSACTIONS=2 -DREPLACES=2 -DCOPIES=1 */
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
#ifndef REPLACES
#define REPLACES 0        /* transactions, the last ones, that end with a value which they load after their commit */
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
#define REPLACE_LOADS_LATE 15 /* rule: what replaces a value is loaded after the call has begun | -DREPLACES=1 -DREADERS=0 */
#define REPLACE_PROVES 16 /* rule: and stored only if its generation is still there | -DTRANSACTIONS=2 -DREPLACES=1 -DREADERS=0 */
#define REPLACE_STANDS 17 /* rule: and if the intent has stood to the end | -DTRANSACTIONS=2 -DREPLACES=1 -DLOSSES=1 -DREADERS=0 */
#define REPLACE_BOUND 18  /* rule: it ends with the intents of others | -DTRANSACTIONS=2 -DREPLACES=1 -DREADERS=0 */
#define REPLACE_REMOVES 19 /* rule: what cannot be replaced is removed | -DREPLACES=1 -DLOSSES=1 -DREADERS=0 */
#define SHARES_LATER 20   /* rule: a load is shared only by who found another one before | -DTRANSACTIONS=2 -DREPLACES=2 -DREADERS=0 */
#define SHARES_STORED 21  /* rule: and is known to have been stored | -DTRANSACTIONS=2 -DREPLACES=2 -DLOSSES=1 -DREADERS=0 */
#define SHARES_WITHDRAWS 22 /* rule: who shares a load ends his own intent | -DTRANSACTIONS=2 -DREPLACES=2 -DREADERS=0 */
#define KEEPS_LATER 23    /* rule: who removes the value leaves only a lease that was taken after one that he had found | -DTRANSACTIONS=2 -DREPLACES=1 -DREADERS=0 */

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

#if REPLACES /* nor is anything promised if another one, which announces itself again, makes a marked lease find an intent */
#define may_die(i) (!(forgotten & (1 << i)) || !exempt && (TRANSACTIONS == 1 || wrote[TRANSACTIONS - 1 - i] != 0))
#else
#define may_die(i) (!(forgotten & (1 << i)) || !exempt)
#endif

/* intend.lua */
inline intend(i) {
#if REPLACES
  exempt = exempt || forgotten; /* what a marked lease finds then is no proof of those that were evicted */
#endif
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

#if REPLACES
byte replacing;           /* the generations of leases whose loads replace, as bits, and of those the ones that were stored */
byte stored;
byte by;                  /* who replaced the value that is there, from 1 on; 0: nobody did */
byte orphan;              /* a generation that a late copy of acquire.lua made */

#define replaces(i) (i >= TRANSACTIONS - REPLACES)

byte seen[TRANSACTIONS];  /* the lease that it has, or found first after its commit; 0: none */

/* Another lease was taken later, so its load is new enough: if that were ended too, writers would end each other's for ever. */
inline end_lease(i) {
  if :: gen != 0 && (seen[i] == 0 || gen == seen[i]) && RULE(KEEPS_LATER) || gen == 0 -> gen = 0; mark = 0 :: else fi
}

/* replace.lua without a value */
inline remove(i) { until = until & ~(1 << i); value = 0; ends = 0; end_lease(i); tier = 0; told++ }

/* replace.lua */
inline replace(i) {
  if
  :: (gen == g || !RULE(REPLACE_PROVES)) && (until & (1 << i) || !RULE(REPLACE_STANDS)) && over == 0 ->
     assert(v >= floor); /* never a stale fill */
     value = v; by = i + 1; stored = stored | (1 << g); ends = (RULE(REPLACE_BOUND) -> until & ~(1 << i) : 0); gen = 0; mark = 0
  :: else -> if :: RULE(REPLACE_REMOVES) -> value = 0; ends = 0 :: else fi; end_lease(i)
  fi;
  until = until & ~(1 << i); tier = 0; told++
}

inline take(l) { serial++; gen = serial; mark = l; replacing = replacing | (1 << gen) }
#endif

proctype Transaction(byte me) {
  byte b, v;
#if REPLACES
  byte g, first, shares;
#endif
  atomic { intend(me); phase[me] = 1; printf("@intend %d ; transaction %d: intend.lua\n", me, me); state() };
  if
  :: atomic { forgotten & (1 << me) -> forgotten = forgotten & ~(1 << me); intend(me); printf("@again %d ; transaction %d: its renewal finds no intent, and it announces it again\n", me, me); state() }
  :: skip
  fi;
  atomic { source++; v = source; wrote[me] = v; printf("@commit %d %d ; transaction %d commits version %d\n", me, v, me, v) };
#if REPLACES
  if
  :: !replaces(me) -> goto end
  :: replaces(me)
  fi;
look:
  if
  :: atomic { first == 0 || gen != first || !RULE(SHARES_LATER) -> /* acquire.lua */
       limit(b);
       if
       :: gen == 0 -> take(b); g = gen; seen[me] = gen; exempt = exempt || forgotten; printf("@lease %d %d ; transaction %d: acquire.lua: lease %d\n", me, g, me, g); state()
       :: gen != 0 && (first == 0 || gen == first) && RULE(SHARES_LATER) -> first = gen; seen[me] = gen; printf("@held %d %d ; transaction %d: acquire.lua: somebody has lease %d\n", me, gen, me, gen); state()
       :: gen != 0 && (first != 0 && gen != first || !RULE(SHARES_LATER)) && replacing & (1 << gen) ->
          shares = gen; if :: RULE(SHARES_WITHDRAWS) -> until = until & ~(1 << me) :: else fi;
          printf("@share %d %d ; transaction %d: it shares the load of lease %d, and withdraws its intent\n", me, gen, me, gen); state()
       :: gen != 0 && (first != 0 && gen != first || !RULE(SHARES_LATER)) && !(replacing & (1 << gen)) -> goto end
       fi }
  :: goto end /* it has no slot */
  :: atomic { may_die(me) -> phase[me] = 3; printf("@crash %d ; transaction %d dies after its commit\n", me, me); goto out }
  fi;
  if
  :: g != 0
  :: g == 0 && shares == 0 -> goto look
  :: atomic { shares != 0 && gen != shares ->
       if
       :: stored & (1 << shares) || !RULE(SHARES_STORED) -> phase[me] = 2; promise(wrote[me]); printf("@shared %d ; transaction %d hears that it was stored; nobody may see what is older than version %d\n", me, me, floor); goto out
       :: else
       fi }; goto end
  :: atomic { shares != 0 && may_die(me) -> phase[me] = 3; printf("@crash %d ; transaction %d dies\n", me, me); goto out }
  fi;
  atomic { v = (RULE(REPLACE_LOADS_LATE) -> source : 1); printf("@load %d %d ; transaction %d reads version %d\n", me, v, me, v) };
  if
  :: atomic { replace(me); phase[me] = 2; promise(wrote[me]); printf("@replace %d %d %d ; transaction %d: replace.lua with version %d; nobody may see what is older than version %d\n", me, v, g, me, v, floor); state(); goto out }
  :: goto end /* the load has failed */
  :: atomic { may_die(me) -> phase[me] = 3; printf("@crash %d ; transaction %d dies after its commit\n", me, me); goto out }
  fi;
end:
  v = wrote[me];
#endif
  if
#if REPLACES
  :: atomic { replaces(me) && seen[me] != 0 -> remove(me); phase[me] = 2; promise(v); printf("@remove %d %d ; transaction %d: replace.lua without a value, after lease %d; nobody may see what is older than version %d\n", me, seen[me], me, seen[me], floor); state() }
#endif
  :: atomic { done(me); phase[me] = 2; promise(v); printf("@done %d ; transaction %d: done.lua; nobody may see what is older than version %d\n", me, me, floor); state() }
  :: atomic { may_die(me) -> phase[me] = 3; printf("@crash %d ; transaction %d dies after its commit\n", me, me) }
  fi;
#if REPLACES
out:
#endif
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
#if REPLACES
       ; by = 0
#endif
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
#if REPLACES
  :: atomic { losses < LOSSES && until != 0 && phase[0] == 1 && phase[TRANSACTIONS - 1] != 3 -> losses++; forgotten = forgotten | until; until = 0; printf("@evict_all ; Redis evicts the intents\n"); state() }
  :: atomic { losses < LOSSES && gen != 0 -> losses++; gen = 0; mark = 0; printf("@evict_lease ; Redis evicts the lease\n"); state() }
  :: atomic { orphan != 0 && gen == orphan -> gen = 0; mark = 0; orphan = 0; printf("@forgotten_lease ; the lease of a late copy is over\n"); state() }
  :: atomic { copies < COPIES && replaces(0) && phase[0] == 2 && gen == 0 && serial < 7 -> copies++; limit(b); take(b); orphan = gen; printf("@late_acquire 0 %d ; a late copy of acquire.lua: lease %d\n", gen, gen); state() }
  :: atomic { copies < COPIES && replaces(0) && phase[0] == 2 && by != 1 -> copies++; remove(0); printf("@late_replace 0 ; a late copy of replace.lua\n"); state() }
#else
  :: atomic { losses < LOSSES && until & 1 && phase[0] == 1 -> losses++; forgotten = 1; until = until & ~1; printf("@evict ; Redis evicts the intent\n"); state() }
#endif
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
