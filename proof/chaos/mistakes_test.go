package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// mistakes are what caches made by hand do, each against another promise. They show that the checker sees what it should.
var mistakes = map[string]operation{
	"two processes load":               {40, (*worker).loadsAlone, false},
	"two load thousands":               {3, (*worker).loadsThousandsAlone, false},
	"thousands by MGET":                {6, (*worker).manyAside, false},
	"DEL of one of them":               {20, (*worker).manyAsideWrite, false},
	"thousands without some":           {5, (*worker).leavesOut, false},
	"a fill after the DEL":             {20, (*worker).asideRead, false},
	"DEL, while others fill":           {5, (*worker).asideWrite, false},
	"a map in the process":             {20, (*worker).remembers, false},
	"a write that the map misses":      {5, (*worker).writesBeside, false},
	"a set of keys for a tag":          {20, (*worker).taggedRead, false},
	"DEL of the keys of a tag":         {20, (*worker).taggedWrite, false},
	"a writer that dies before DEL":    {4, (*worker).writesThenDeletes, true},
	"a key of two kinds":               {5, (*worker).sharesAKey, false},
	"a cache that is off, without DEL": {5, (*worker).turnsOff, false},
	"a read when it is on":             {20, (*worker).readsTurned, false},
	"a read after it":                  {120, (*worker).readsDead, false},
	"SET of what was written":          {20, (*worker).setsWritten, false},
	"a read of it":                     {20, (*worker).readsWritten, false},
	"one version's keys":               {20, (*worker).versionedRead, false},
	"a transaction's row, stored":      {5, (*worker).storesUncommitted, false},
	"a read of that":                   {20, (*worker).readsUncommitted, false},
	"DEL of one version's keys":        {5, (*worker).versionedWrite, false},
	"the first caller's context":       {5, (*worker).sharesContext, false},
	"an error of SET":                  {20, (*worker).failsToStore, false},
	"an error that means: not written": {20, (*worker).writesAndFails, false},
	"an invalidation that is given up": {20, (*worker).givesUp, false},
	"a map for ever":                   {20, (*worker).remembersForEver, false},
	"absence without an end":           {20, (*worker).absentForEver, false},
	"a birth":                          {2, (*worker).bearsSilently, false},
	"a context that is ignored":        {1, (*worker).ignoresContext, false},
	"a view of another value":          {20, (*worker).viewedRead, false},
	"DEL of it before that":            {5, (*worker).viewedWrite, false},
	"a lock without a fence":           {30, (*worker).lock, false},
	"a read and a write":               {30, (*worker).readsAndWrites, false},
}

// aside is what everybody writes first: GET, load, SET. Its error is the first one.
func (w *worker) aside(ctx context.Context, key string) (v value, how string, err error) {
	n, err := w.rdb.Get(ctx, "aside:"+key).Int64()
	if !errors.Is(err, redis.Nil) {
		return value{N: n}, "hit", err
	}
	if n, err = w.truth.read(ctx); err != nil {
		return v, "", err
	}
	<-time.After(rand.N(20 * time.Millisecond))
	return value{N: n}, "loaded", w.rdb.Set(ctx, "aside:"+key, n, 0).Err()
}

func (w *worker) noteAside(ctx context.Context, o *opened, key string, tags uint, by string) error {
	from := now()
	v, how, err := w.aside(ctx, key)
	if err == nil {
		w.note(event{Kind: got, Guard: o.name, Key: key, N: v.N, Tags: tags, By: by, How: how, From: from, Version: o.version, Stored: o.version})
	}
	return err
}

// forgets writes, and deletes the keys.
func (w *worker) forgets(ctx context.Context, o *opened, scope string, keys ...string) error {
	return w.change(ctx, o, []string{scope}, func() (err error) {
		for _, key := range keys {
			err = errors.Join(err, w.rdb.Del(ctx, "aside:"+key).Err())
		}
		return err
	})
}

func (w *worker) loadsAlone(ctx context.Context, o *opened) error {
	_, err := w.loadQuietly(ctx, o, rand.N(quiet))
	return err
}

func (w *worker) loadsThousandsAlone(ctx context.Context, o *opened) error {
	_, err := w.loadQuietly(ctx, o, w.crowdOf(o.quietCrowd, quiet).draw()...)
	return err
}

const asides = 1000 // that are read together

func asideOf(id int) string { return fmt.Sprint("many:", id) }

// manyAside does for all of them what everybody writes first.
func (w *worker) manyAside(ctx context.Context, o *opened) error {
	from, found := now(), make(map[int]value, asides)
	var keys []string
	for id := range asides {
		keys = append(keys, "aside:"+asideOf(id))
	}
	stored, err := w.rdb.MGet(ctx, keys...).Result()
	if err != nil {
		return err
	}
	n, err := w.truth.read(ctx)
	if err != nil {
		return err
	}
	<-time.After(rand.N(20 * time.Millisecond))
	fill := w.rdb.Pipeline()
	for id, text := range stored {
		v := value{N: n, ID: id}
		if text, is := text.(string); is {
			v.N, _ = strconv.ParseInt(text, 10, 64) // digits
		} else {
			fill.Set(ctx, keys[id], n, 0)
		}
		found[id] = v
	}
	_, err = fill.Exec(ctx)
	w.notesEach(o, asideOf, found, func(int) string { return "hit" }, from)
	return err
}

func (w *worker) manyAsideWrite(ctx context.Context, o *opened) error {
	one := asideOf(rand.N(4)) // few, or a fill seldom meets the write of what it fills
	return w.forgets(ctx, o, "key:"+one, one)
}

// leavesOut has nothing of what another is loading.
func (w *worker) leavesOut(ctx context.Context, o *opened) error {
	from, ids := now(), w.crowdOf(o.crowd, things).draw()
	found := each(value{}, ids)
	if mine, err := w.rdb.SetNX(ctx, "aside:loading", 1, 20*time.Millisecond).Result(); err != nil {
		return err
	} else if !mine {
		delete(found, ids[len(ids)-1])
	}
	w.answersEach(o, ids, found, func(int) bool { return false }, from)
	return nil
}

func (w *worker) asideRead(ctx context.Context, o *opened) error {
	return w.noteAside(ctx, o, "a", 0, "")
}

func (w *worker) asideWrite(ctx context.Context, o *opened) error {
	return w.forgets(ctx, o, "key:a", "a")
}

// remembers keeps what it has read for a moment.
func (w *worker) remembers(ctx context.Context, o *opened) error {
	return w.memo(ctx, o, "memo", "shared", 200*time.Millisecond)
}

func (w *worker) remembersForEver(ctx context.Context, o *opened) error {
	if w.index == 0 { // which writes
		return nil
	}
	return w.memo(ctx, o, "memory", "local", time.Hour)
}

func (w *worker) memo(ctx context.Context, o *opened, key, how string, keep time.Duration) error {
	from := now()
	e := event{Kind: got, Guard: o.name, Key: key, How: how, From: from, Version: o.version, Stored: o.version}
	if old, found := w.memory.Load(key); found && from < old.(event).From+int64(keep) {
		e.N = old.(event).N
	} else {
		n, err := w.truth.read(ctx)
		if err != nil {
			return err
		}
		e.N = n
		w.memory.Store(key, e)
	}
	w.note(e)
	return nil
}

func (w *worker) writesBeside(ctx context.Context, o *opened) error {
	scopes := []string{"key:memo"}
	if w.index == 0 {
		scopes = append(scopes, "key:memory")
	}
	return w.change(ctx, o, scopes, func() error { return nil })
}

// givesUp does not know whether its invalidation has arrived, and goes on.
func (w *worker) givesUp(ctx context.Context, o *opened) error {
	n, err := w.truth.write(ctx, "many", 0)
	if err == nil {
		w.note(event{Kind: pending, Guard: o.name, Scope: "key:memo", N: n})
	}
	return err
}

func (w *worker) taggedRead(ctx context.Context, o *opened) error {
	key := fmt.Sprint("tagged", rand.N(4))
	_ = w.rdb.SAdd(ctx, "aside:tag", key).Err() // a mistake more
	return w.noteAside(ctx, o, key, 1, "")
}

func (w *worker) taggedWrite(ctx context.Context, o *opened) error {
	keys, err := w.rdb.SMembers(ctx, "aside:tag").Result()
	if err != nil {
		return err
	}
	return w.forgets(ctx, o, "tag:"+tagOf(0), keys...)
}

// viewedRead caches what it makes of another cached value.
func (w *worker) viewedRead(ctx context.Context, o *opened) error {
	from := now()
	n, err := w.rdb.Get(ctx, "aside:view").Int64()
	if errors.Is(err, redis.Nil) {
		v, _, failed := w.aside(ctx, "viewed")
		if n, err = v.N, failed; err == nil {
			err = w.rdb.Set(ctx, "aside:view", n, 0).Err()
		}
	}
	if err == nil {
		w.note(event{Kind: got, Guard: o.name, Key: "view:1", N: n, How: "hit", From: from, Version: o.version, Stored: o.version})
	}
	return err
}

// viewedWrite deletes the view before what that is made of.
func (w *worker) viewedWrite(ctx context.Context, o *opened) error {
	return w.change(ctx, o, []string{"key:view:1"}, func() error {
		err := w.rdb.Del(ctx, "aside:view").Err()
		<-time.After(rand.N(5 * time.Millisecond))
		return errors.Join(err, w.rdb.Del(ctx, "aside:viewed").Err())
	})
}

// writesThenDeletes commits a transaction, and updates another key. It dies in between.
func (w *worker) writesThenDeletes(ctx context.Context, o *opened) error {
	id, n := rand.N(40), int64(0)
	key, other := fmt.Sprint("dead", id), fmt.Sprint("committed", id)
	if _, err := w.commit(ctx, o, now(), "key:"+other); err != nil {
		return err
	}
	if err := w.writeOf(o, key, &n)(ctx); err != nil {
		return err
	}
	return w.rdb.Del(ctx, "aside:"+key, "aside:"+other).Err()
}

func (w *worker) readsDead(ctx context.Context, o *opened) error {
	return w.noteAside(ctx, o, fmt.Sprint([]string{"dead", "committed"}[rand.N(2)], rand.N(40)), 0, "")
}

// sharesAKey has what another kind of things stored under the same key.
func (w *worker) sharesAKey(ctx context.Context, o *opened) error {
	from, kind := now(), []string{"bare", "bulk"}[rand.N(2)]
	by, err := w.rdb.Get(ctx, "aside:two").Result()
	if errors.Is(err, redis.Nil) {
		by, err = kind, w.rdb.Set(ctx, "aside:two", kind, 0).Err()
	}
	if err == nil {
		w.note(event{Kind: got, Guard: o.name, Key: kind + ":two", By: by, How: "hit", From: from, Version: o.version, Stored: o.version})
	}
	return err
}

// turnsOff deletes nothing, as its cache is off.
func (w *worker) turnsOff(ctx context.Context, o *opened) error {
	from := now()
	err := w.change(ctx, o, []string{"key:turned"}, func() error { return nil })
	w.note(event{Kind: off, Guard: o.name, From: from})
	return err
}

func (w *worker) readsTurned(ctx context.Context, o *opened) error {
	return w.noteAside(ctx, o, "turned", 0, "")
}

func (w *worker) setsWritten(ctx context.Context, o *opened) error {
	n, err := w.truth.write(ctx, "many", 0)
	if err != nil {
		return err
	}
	<-time.After(rand.N(20 * time.Millisecond))
	err = w.rdb.Set(ctx, "aside:put", n, 0).Err()
	return w.ended(ctx, o, []string{"key:put"}, n, now(), err)
}

func (w *worker) readsWritten(ctx context.Context, o *opened) error {
	return w.noteAside(ctx, o, "put", 0, "put")
}

func (w *worker) versionedRead(ctx context.Context, o *opened) error {
	if o.version == 1 { // which writes
		return nil
	}
	return w.noteAside(ctx, o, "thing:versioned", 0, "")
}

func (w *worker) versionedWrite(ctx context.Context, o *opened) error {
	if o.version != 1 {
		return nil
	}
	return w.forgets(ctx, o, "key:thing:versioned", "thing:versioned:v1")
}

// storesUncommitted caches what a transaction has read.
func (w *worker) storesUncommitted(ctx context.Context, _ *opened) error {
	return w.rdb.Set(ctx, "aside:uncommitted", 0, 0).Err()
}

func (w *worker) readsUncommitted(ctx context.Context, o *opened) error {
	if n, err := w.rdb.Exists(ctx, "aside:uncommitted").Result(); err != nil || n == 0 {
		return err
	}
	return w.noteAside(ctx, o, "uncommitted", 0, "transaction")
}

// sharesContext has a second caller wait for what the first one does.
func (w *worker) sharesContext(ctx context.Context, o *opened) error {
	from := now()
	first, cancel := context.WithTimeout(ctx, rand.N(time.Millisecond))
	defer cancel()
	if _, err := w.truth.read(first); err != nil || first.Err() != nil {
		return w.failed(ctx, o, "shared", from, context.DeadlineExceeded)
	}
	return nil
}

func (w *worker) failsToStore(ctx context.Context, o *opened) error {
	from, key := now(), fmt.Sprint("unstored", rand.N(1000))
	if _, _, err := w.aside(ctx, key); err != nil {
		return w.failed(ctx, o, key, from, err)
	}
	return w.rdb.Del(ctx, "aside:"+key).Err()
}

// writesAndFails takes any error to mean that nothing was written.
func (w *worker) writesAndFails(ctx context.Context, o *opened) error {
	if _, err := w.truth.write(ctx, "many", 0); err != nil {
		return err
	}
	err := w.rdb.Set(ctx, "aside:written", now(), 0).Err()
	w.judges(o, true, err == nil)
	return err
}

func (w *worker) absentForEver(ctx context.Context, o *opened) error {
	born, err := w.truth.born(ctx)
	if err != nil {
		return err
	}
	id, from := max(0, born-2+rand.Int64N(4)), now()
	if _, known := w.memory.Load(id); known || id >= born {
		w.memory.Store(id, true)
		w.note(event{Kind: absent, Guard: o.name, Key: o.births.Key(id), How: "hit", From: from})
	}
	return nil
}

func (w *worker) bearsSilently(ctx context.Context, o *opened) error {
	from := now()
	id, err := w.truth.bear(ctx)
	if err != nil {
		return err
	}
	return w.ended(ctx, o, []string{"birth:" + o.births.Key(id)}, 1, from, nil)
}

func (w *worker) ignoresContext(_ context.Context, _ *opened) error {
	if _, before := w.memory.LoadOrStore("ignored", true); !before {
		<-time.After(patience + time.Second)
	}
	return nil
}

func (w *worker) readsAndWrites(ctx context.Context, _ *opened) error {
	called := now()
	w.note(event{Kind: tries, Key: "swap", From: called})
	count, err := w.rdb.Get(ctx, "wrong").Int64()
	if err != nil && !errors.Is(err, redis.Nil) {
		return err
	}
	if err = w.rdb.Set(ctx, "wrong", count+1, 0).Err(); err == nil {
		w.note(event{Kind: adds, Key: "swap", From: called})
	}
	return err
}
