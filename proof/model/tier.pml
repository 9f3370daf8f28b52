/*
 * The local tier of one instance, which may have one of two keys: notices about both, with numbers that are late or lost, interruptions, repetitions, and reads under way.
 */

/* holds: notices that are late, or that overtake each other | -DREADS=2 */
/* holds: a notice that is lost | -DREADS=2 -DLOST=1 */
/* holds: an interruption of the subscription | -DREADS=2 -DCUTS=1 */
/* ends: a notice that is lost | -DREADS=2 -DLOST=1 */
/* large: three reads, lost notices, and an interruption | -DREADS=3 -DLOST=2 -DCUTS=1 -DWRITES=3 */
#include "common.h"

#ifndef READS
#define READS 2
#endif
#ifndef WRITES
#define WRITES 2
#endif
#ifndef LOST
#define LOST 0
#endif
#ifndef CUTS
#define CUTS 0
#endif

/*
 * The rules of the protocol. Each is left out in turn, within those bounds, and must be missed.
 */
#define NOTICE_FORGETS 1    /* rule: a notice makes the tier forget the key | -DREADS=1 */
#define MARK_BEFORE_READ 2  /* rule: what was read is kept only if nothing was forgotten since before the read was sent | -DREADS=1 */
#define CHECK_AND_KEEP 3    /* rule: the check and the write are one step | -DREADS=1 */
#define GAP_BYPASSES 4      /* rule: while a number is missing, the tier is not served from | -DREADS=1 */
#define GAP_VOIDS 5         /* rule: a number that does not come makes everything void | -DREADS=1 -DLOST=1 */
#define REPEATED 6          /* rule: the last number is repeated | -DREADS=1 -DWRITES=1 -DLOST=1 */
#define CUT_BYPASSES 7      /* rule: while there is no subscription, the tier is not served from, or filled | -DREADS=1 -DCUTS=1 */
#define CUT_VOIDS 8         /* rule: when the subscription is back, everything is void | -DREADS=1 -DCUTS=1 */
#define OWN_AT_ONCE 9       /* rule: the tier of the writer's own instance forgets before Invalidate returns | -DREADS=1 -DOWN=1 */
#ifndef OWN
#define OWN 0
#endif

byte source = 1, value = 1;
byte floor = 1;            /* what the notices that were heard, or could be missed, promise */
byte own_floor = 1;        /* what Invalidate promises its own instance */

byte sent, heard;          /* numbers of notices; all up to `heard` came */
byte early;                /* those beyond that came, as bits */
byte up_to;                /* the last number that there is known to be */
byte told[8];              /* what each notice promises */
byte other;               /* notices about the other key, as bits */
byte tier, stripe;         /* the version that it has; 0: none. How often something was forgotten */
bool up = true;            /* the subscription */
bool serving;              /* within a Get */
byte lost, cuts, busy;
bool repeated, written;

chan notices = [4] of { byte };

inline state() { printf("# tier %d stripe %d heard %d up_to %d up %d value %d floor %d\n", tier, stripe, heard, up_to, up, value, floor) }

inline forget_all() { tier = 0; stripe++ }

#define gap (up_to > heard)
#define usable ((up || !RULE(CUT_BYPASSES)) && (!gap || !RULE(GAP_BYPASSES)))

/* What may be expected of the tier: that of the notices that came, and of those before them. While nothing is missing, it may be late. */
inline serve() {
  if
  :: tier != 0 && usable ->
     printf("@local %d ; a Get: version %d from the tier, and it must be %d or later\n", tier, tier, (OWN && own_floor > floor -> own_floor : floor));
     assert(tier >= floor); /* never older than a notice that came, or that is known to be missing */
     assert(!OWN || tier >= own_floor) /* read your writes, on the instance that wrote */
  :: else
  fi
}

proctype Get() {
  byte n, v, m;
  bool live;
  do
  :: n == READS -> break
  :: n < READS ->
     n++;
     atomic { m = stripe; live = up || !RULE(CUT_BYPASSES); printf("@mark %d ; a Get notes the state of the stripe, %d\n", m, m) };
     atomic { v = value; if :: !RULE(MARK_BEFORE_READ) -> m = stripe :: else fi; printf("@read %d ; GET: version %d\n", v, v) };
     if :: !RULE(MARK_BEFORE_READ) -> atomic { m = stripe } :: else fi;
     if
     :: !RULE(CHECK_AND_KEEP) -> (m == stripe || usable)
     :: else
     fi;
     atomic {
       if
       :: live && (m == stripe || !RULE(CHECK_AND_KEEP)) -> tier = v
       :: else
       fi;
       printf("@keep %d ; the tier has version %d\n", tier, tier); state()
     };
     atomic { serve() }
  od;
  busy--
}

proctype Writer() {
  byte n;
  do
  :: n == WRITES -> break
  :: n < WRITES ->
     n++;
     atomic {
       sent++;
       if
       :: source++; value = source
       :: other = other | (1 << sent) /* the other key */
       fi;
       told[sent] = source;
       if :: !up && source > floor -> floor = source :: else fi;
       if
       :: lost < LOST -> lost++; printf("@lose %d %d ; invalidate.lua for version %d; notice %d is lost\n", sent, source, source, sent)
       :: !up -> printf("@lose %d %d ; invalidate.lua for version %d; nobody hears notice %d\n", sent, source, source, sent)
       :: up -> notices!!sent; printf("@send %d %d ; invalidate.lua for version %d sends notice %d\n", sent, source, source, sent)
       fi;
       if
       :: OWN && RULE(OWN_AT_ONCE) && !(other & (1 << sent)) -> forget_all()
       :: else
       fi;
       state()
     };
     atomic { own_floor = source; printf("@invalidated ; Invalidate returns\n") }
  od;
  written = true; busy--
}

inline hear(n) {
  if :: RULE(NOTICE_FORGETS) && !(other & (1 << n)) -> forget_all() :: else fi;
  if :: told[n] > floor -> floor = told[n] :: else fi;
  early = early | (1 << n);
  if :: n > up_to -> up_to = n :: else fi;
  do
  :: early & (1 << (heard + 1)) -> heard++
  :: else -> break
  od;
  printf("@hear %d ; notice %d comes\n", n, n); state()
}

/* The subscription, and the timers of the feed. */
proctype Feed() {
  byte n;
  do
  :: atomic { notices?n -> hear(n); if :: gap && told[up_to] > floor -> floor = told[up_to] :: else fi; n = 0 }
  :: atomic { len(notices) > 1 && notices??[2] && !(early & 4) -> notices??2; hear(2) } /* they overtake each other */
  :: atomic { gap && empty(notices) -> /* a second has passed */
       heard = up_to;
       if :: RULE(GAP_VOIDS) -> forget_all() :: else fi;
       if :: told[up_to] > floor -> floor = told[up_to] :: else fi;
       printf("@void ; what is missing does not come: all is void\n"); state() }
  :: atomic { written && up && !repeated && empty(notices) -> /* the last number, some seconds later */
       repeated = true;
       if
       :: RULE(REPEATED) && sent > up_to -> up_to = sent; printf("@repeat %d ; the writer repeats the number %d\n", sent, sent)
       :: else
       fi;
       state() }
  :: atomic { busy == 0 && repeated && !gap && up && empty(notices) -> 
       if :: told[sent] > floor -> floor = told[sent] :: else fi;
       serve(); break }
  :: atomic { cuts < CUTS && up -> cuts++; up = false; do :: notices?n -> n = 0 :: empty(notices) -> break od; printf("@cut ; the subscription breaks\n"); state() }
  :: atomic { !up -> up = true; heard = sent; up_to = sent; early = (1 << (sent + 1)) - 1;
       if :: RULE(CUT_VOIDS) -> forget_all() :: else fi;
       if :: told[sent] > floor -> floor = told[sent] :: else fi;
       printf("@up ; the subscription is back\n"); state() }
  od
}

init { atomic { early = 1; busy = 2; run Get(); run Writer(); run Feed() } }
