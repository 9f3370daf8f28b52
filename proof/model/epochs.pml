/*
 * Epochs: two keys with one tag, which are invalidated by the tag, or with all others. Each load names the tag at its end, or knows it before.
 */

/* holds: two loads of one key, and an invalidation of the tag | -DKEYS=1 */
/* holds: a load of each of two keys, and an invalidation of the tag | -DKEYS=2 */
/* holds: two loads, and an invalidation of everything | -DKEYS=1 -DALL=1 */
/* holds: two loads, a late copy, and an epoch that is evicted | -DKEYS=1 -DCOPIES=1 -DLOSSES=1 */
/* holds: an invalidation that Redis does not answer | -DKEYS=1 -DFAILED=1 */
/* ends: two loads of one key | -DKEYS=1 */
/* large: a load of each of two keys, late copies, and an epoch that is evicted | -DKEYS=2 -DCOPIES=1 -DLOSSES=1 */
/* large: three loads | -DKEYS=1 -DLOADS=3 */
#include "common.h"

#ifndef LOADS
#define LOADS 2
#endif
#ifndef KEYS
#define KEYS 1
#endif
#ifndef ALL
#define ALL 0          /* 1: InvalidateAll; else InvalidateTags */
#endif
#ifndef LOSSES
#define LOSSES 0       /* epochs that are evicted */
#endif
#ifndef COPIES
#define COPIES 0
#endif
#ifndef FAILED
#define FAILED 0       /* 1: the invalidation fails at first, and is pending on instance 0 */
#endif

/*
 * The rules of the protocol. Each is left out in turn, within those bounds, and must be missed.
 */
#define EPOCHS_BEFORE_LOAD 1 /* rule: the epochs of a load are those from before it | -DKEYS=1 */
#define STAMP_IS_COMPARED 2  /* rule: an entry is valid only under the current epochs | -DKEYS=1 -DALL=1 */
#define MISSING_IS_INVALID 3 /* rule: an epoch that is missing makes an entry invalid | -DKEYS=1 -DALL=1 */
#define EPOCH_HAS_TIME 4     /* rule: an epoch has the time in it, so none comes back | -DKEYS=1 -DCOPIES=1 */
#define ANY_IS_COMPARED 5    /* rule: a tag that is named at the end counts only if no tag was invalidated since the load began | -DKEYS=1 */
#define ANY_GOES_WITH_TAG 6  /* rule: invalidating a tag removes the epoch of all tags together, too | -DKEYS=1 */
#define EPOCHS_ARE_READ 7    /* rule: a call reads the epochs after it began | -DKEYS=1 -DALL=1 */
#define WAITER_JUDGES 8      /* rule: who is sent an entry compares its epochs with those read since it began | -DKEYS=1 -DALL=1 */
#define JOINED_ASKS_AGAIN 9  /* rule: who joined a load asks for the epochs once more | -DKEYS=1 */
#define PENDING_COUNTS 10 /* rule: an instance serves nothing of a name to a call in whose time an invalidation of it was pending there | -DKEYS=1 -DFAILED=1 */

byte source = 1, floor = 1, own_floor = 1;

/* Redis: the epochs, and an entry of each key with its stamp. */
byte prefix_epoch, tag_epoch, any_epoch, serial;
byte first_tag, first_any, first_prefix;          /* for EPOCH_HAS_TIME */
byte value[KEYS], at_prefix[KEYS], at_tag[KEYS];
byte lease[KEYS];                                 /* the generation; 0: none */

byte copies, losses, busy, pendings;
bool pending, made;

inline state() {
  printf("# value %d prefix %d tag %d any %d at_prefix %d at_tag %d source %d floor %d\n", value[0], prefix_epoch, tag_epoch, any_epoch, at_prefix[0], at_tag[0], source, floor)
}

/* make.lua, for one epoch */
inline make(epoch, first) {
  if
  :: epoch == 0 ->
     serial++;
     epoch = (!RULE(EPOCH_HAS_TIME) && first != 0 -> first : serial);
     if :: first == 0 -> first = epoch :: else fi
  :: else
  fi
}

/* revoke.lua */
inline revoke() {
  if
  :: ALL -> prefix_epoch = 0
  :: else -> tag_epoch = 0; if :: RULE(ANY_GOES_WITH_TAG) -> any_epoch = 0 :: else fi
  fi
}

/* What a call may be given, judged by epochs that it has read. */
#define valid(p, t, now_p, now_t) (!RULE(STAMP_IS_COMPARED) || (p == now_p || !RULE(MISSING_IS_INVALID) && now_p == 0) && (t == now_t || !RULE(MISSING_IS_INVALID) && now_t == 0) && (p != 0 && t != 0))

/* A Get: on instance `me`, of key `me % KEYS`. */
proctype Get(byte me) {
  byte key, need, v, p, t, any, now_p, now_t, g, was, late_p, late_t;
  bool knows, stored;
  key = me % KEYS;
  atomic {
    was = (pending -> 255 : pendings);
    need = (me == 0 && own_floor > floor -> own_floor : floor);
    if :: !RULE(EPOCHS_ARE_READ) -> now_p = prefix_epoch; now_t = tag_epoch :: else fi; /* what the process knew before */
    printf("@begin %d ; instance %d: a Get of key %d begins\n", me, me, key)
  };
  if :: !RULE(EPOCHS_ARE_READ) -> need = floor :: else fi;
  atomic { /* MGET of value and epochs */
    v = value[key]; p = at_prefix[key]; t = at_tag[key];
    if :: RULE(EPOCHS_ARE_READ) -> now_p = prefix_epoch; now_t = tag_epoch :: else fi;
    printf("@read %d %d ; instance %d: MGET: version %d, epochs %d and %d\n", me, v, me, v, now_p, now_t); state()
  };
  atomic {
    if
    :: v != 0 && valid(p, t, now_p, now_t) && !(me == 0 && was != pendings && RULE(PENDING_COUNTS)) ->
       printf("@return %d %d ; instance %d: its Get returns version %d, which must be %d or later\n", me, v, me, v, need);
       assert(v >= need); /* read your writes */
       goto done
    :: else
    fi
  };
  atomic { /* acquire.lua; the value that is not valid stays */
    if
    :: lease[key] == 0 -> serial++; lease[key] = serial; g = serial; made = true; printf("@acquire %d %d ; instance %d: acquire.lua: lease %d\n", me, g, me, g)
    :: else -> goto wait
    fi
  };
  /* make.lua, before the load: the epochs that it will have. It may know the tag. */
  atomic {
    if :: v == 0 -> knows = false :: knows = true fi; /* an entry has its tag */
    if
    :: RULE(EPOCHS_BEFORE_LOAD) -> /* those that were read; it makes what was missing */
       p = now_p; t = 0;
       if :: p == 0 -> make(prefix_epoch, first_prefix); p = prefix_epoch :: else fi;
       if
       :: knows -> t = now_t; if :: t == 0 -> make(tag_epoch, first_tag); t = tag_epoch :: else fi
       :: else
       fi
    :: else
    fi;
    make(any_epoch, first_any); any = any_epoch;
    printf("@ready %d %d ; instance %d: make.lua: epochs %d and %d, of all tags %d\n", me, knows, me, p, t, any); state()
  };
  atomic { v = source; printf("@load %d %d ; instance %d: its loader reads version %d\n", me, v, me, v) };
  atomic { /* make.lua, after the load: the tag that the loader has named, and in the same step the epoch of all tags */
    stored = true;
    if
    :: !RULE(EPOCHS_BEFORE_LOAD) -> make(prefix_epoch, first_prefix); p = prefix_epoch; make(tag_epoch, first_tag); t = tag_epoch
    :: RULE(EPOCHS_BEFORE_LOAD) && !knows ->
       make(tag_epoch, first_tag); t = tag_epoch; make(any_epoch, first_any);
       stored = (any == any_epoch || !RULE(ANY_IS_COMPARED))
    :: else
    fi;
    printf("@stamp %d %d %d ; instance %d: its stamp is %d and %d%c\n", me, stored, t, me, p, t, (stored -> ' ' : '!')); state()
  };
  atomic { /* fill.lua */
    if
    :: stored && lease[key] == g -> value[key] = v; at_prefix[key] = p; at_tag[key] = t
    :: lease[key] != g -> stored = false
    :: else
    fi;
    lease[key] = (lease[key] == g -> 0 : lease[key]);
    printf("@fill %d %d %d ; instance %d: fill.lua with version %d, %d\n", me, v, stored, me, v, stored); state()
  };
  atomic { /* those that joined before the fill was sent ask for the epochs again */
    if
    :: stored && (prefix_epoch == p && tag_epoch == t || !RULE(JOINED_ASKS_AGAIN)) -> assert(v >= floor) /* read your writes, who joined */
    :: else
    fi
  };
  goto done;
wait: /* for the load of another: the entry comes in a message */
  atomic {
    if :: RULE(EPOCHS_ARE_READ) -> now_p = prefix_epoch; now_t = tag_epoch; need = floor :: else fi;
    printf("@wait %d ; instance %d: waits for another's load, and reads epochs %d and %d\n", me, me, now_p, now_t)
  };
  atomic {
    lease[key] == 0 -> v = value[key]; p = at_prefix[key]; t = at_tag[key];
    if
    :: v != 0 && (valid(p, t, now_p, now_t) || !RULE(WAITER_JUDGES)) ->
       printf("@hear %d %d ; instance %d: is sent version %d, and it must be %d or later\n", me, v, me, v, need);
       assert(v >= need) /* read your writes, who waited */
    :: else /* it asks again */
    fi
  };
done: busy--
}

/* The writer, on instance 0. */
proctype Writer() {
  byte v;
  atomic { source++; v = source; printf("@commit %d ; the writer commits version %d\n", v, v) };
  if
  :: FAILED -> atomic { pending = true; pendings++; own_floor = v; printf("@pending ; the invalidation fails: it is pending on instance 0\n") };
     atomic { revoke(); floor = v; printf("@revoke ; it is sent again\n"); state() };
     atomic { pending = false; printf("@settled ; and answered\n") }
  :: else -> atomic { revoke(); floor = v; printf("@revoke ; revoke.lua: nobody may see what is older than version %d\n", v); state() }
  fi;
  busy--
}

proctype Trouble() {
  do
  :: atomic { busy == 0 -> break }
  :: atomic { copies < COPIES && made -> copies++;
       if
       :: make(prefix_epoch, first_prefix); make(tag_epoch, first_tag); make(any_epoch, first_any); printf("@late_make ; a late copy of make.lua\n"); state()
       :: floor > 1 -> revoke(); printf("@late_revoke ; a late copy of revoke.lua\n"); state()
       fi }
  :: atomic { losses < LOSSES && prefix_epoch != 0 -> losses++; prefix_epoch = 0; printf("@evict prefix ; Redis evicts the epoch of the Prefix\n"); state() }
  :: atomic { losses < LOSSES && tag_epoch != 0 -> losses++; tag_epoch = 0; printf("@evict tag ; Redis evicts the epoch of the tag\n"); state() }
  :: atomic { losses < LOSSES && any_epoch != 0 -> losses++; any_epoch = 0; printf("@evict any ; Redis evicts the epoch of all tags\n"); state() }
  od
}

init {
  byte i;
  atomic {
    /* epochs from before, and perhaps an entry */
    prefix_epoch = 1; tag_epoch = 2; any_epoch = 3; serial = 3; first_prefix = 1; first_tag = 2; first_any = 3;
    if
    :: value[0] = 1; at_prefix[0] = 1; at_tag[0] = 2
    :: skip
    fi;
    printf("@cached %d ; there are epochs, and version %d\n", value[0], value[0]); state();
    busy = LOADS + 1;
    do :: i < LOADS -> run Get(i); i++ :: else -> break od;
    run Writer(); run Trouble()
  }
}
