package cacheguard

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/cache/epoch"
	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/cache/tier"
	"github.com/cacheguard/go/internal/redis/send"
	"github.com/cacheguard/go/internal/testing/expect"
)

// epochStage runs an order of epoch_schedule_test.go with the code, on a real Redis.
type epochStage struct {
	g              *Guard
	cache          *Cache[string, string]
	key, tag       string // of the Cache, and of its entry
	name           string // that is invalidated
	evicts         string // the name whose epoch is evicted; empty: of all tags together
	source, pushed string
	loads          [2]stagedLoad
	written, read  int
	steps          int // of the writer; 0: epochWriterSteps
	wrong          string

	mark   tier.Mark
	epochs epoch.Reading
	answer *send.Read
	late   bool // the reader began after the writer had returned
}

// stagedLoad is a load under way.
type stagedLoad struct {
	known   bool // the tag is known before
	step    int
	late    bool
	r       *rebuild
	got     protocol.Acquired
	value   string
	stamp   protocol.Stamp
	refused error
}

func (s *epochStage) over() bool { return s.written == cmp.Or(s.steps, epochWriterSteps) }

func (s *epochStage) job(known bool) *load {
	spec := loadSpec[string]{load: load{policy: &s.cache.policy}, loader: returns("")}
	if known {
		spec.known = []string{s.tag}
	}
	return spec.loadOf(s.g, s.key, scope{}, nil)
}

func (s *epochStage) write(ctx context.Context) (err error) {
	switch s.written++; s.written {
	case 1:
		s.source = "new"
	case 2:
		for part := range s.g.epochs.Parts() {
			if err := s.g.epochs.Revoke(s.name, part, "").Run(ctx, s.g.rdb).Err(); err != nil {
				return err
			}
		}
	case 3:
		s.g.local.ForgetMany(s.name)
	}
	return nil
}

func (s *epochStage) evict(ctx context.Context) error {
	key := s.g.cfg.Prefix + ":{0}:epoch:tags"
	if s.evicts != "" {
		key = s.g.epochs.Key(s.evicts, 0)
	}
	return s.g.rdb.(client).Del(ctx, key).Err()
}

// load does a load's next step.
func (s *epochStage) load(ctx context.Context, l *stagedLoad) (err error) {
	g := s.g
	switch l.step++; l.step {
	case 1: // as the read of a call does
		l.r, l.late = newRebuild(g, s.job(l.known), nil, nil), s.over()
		j := l.r.load
		epochs := j.reading(g)
		read, err := g.link.Get(ctx, j.valueKey+":none", epochs.Keys()...)
		if err != nil {
			return err
		}
		epochs.Take(read)
		j.epochs = &epochs
	case 2:
		request := protocol.Request{Token: l.r.token, Take: true}
		l.got, err = protocol.ParseAcquired(g.keys.Acquire(l.r.load.valueKey, request).Run(ctx, g.rdb))
	case 3:
		if l.got.Status == protocol.Held {
			l.r.asked(ctx)
			_, _, err = l.r.epochs.Check(ctx, protocol.Stamp{}) // so that the reply is there
			return err
		}
		l.r.prepareLoad(ctx)
		l.r.under.Ready(ctx)
	case 4:
		l.value = s.source
	case 5:
		if l.got.Status == protocol.Granted {
			l.stamp, l.refused = l.r.stamp(ctx, &loaded{tags: []string{s.tag}})
		}
	case 6:
		return s.end(ctx, l)
	}
	return err
}

// end stores what was loaded, or takes what the other load has sent.
func (s *epochStage) end(ctx context.Context, l *stagedLoad) error {
	switch {
	case l.got.Status == protocol.Granted && l.refused == nil:
		f := l.r.prepare(ctx, l.r.made(&l.value), l.got.Generation, l.stamp, nil)
		status, err := s.g.keys.Fill(l.r.load.valueKey, f).Run(ctx, s.g.rdb).Text()
		if status == protocol.Stored {
			s.pushed = s.g.rdb.(client).Get(ctx, l.r.load.valueKey).Val()
		}
		return err
	case l.got.Status == protocol.Granted:
		l.r.giveUp()
	case s.pushed != "":
		if a, done := l.r.use(ctx, []byte(s.pushed), Shared, 1); done && l.late && a.err == nil && *a.value.(*string) == "old" {
			s.wrong = "a caller that waited got the old value"
		}
	}
	return nil
}

// get does the next step of a reader with a tier. A read of the value and the epochs is one step.
func (s *epochStage) get(ctx context.Context) (err error) {
	j := s.job(false)
	switch s.read++; s.read {
	case 1:
		s.mark, s.late = s.g.local.Mark(s.key), s.over()
		s.epochs = j.reading(s.g)
	case 2:
		if s.answer, err = s.g.link.Get(ctx, j.valueKey, s.epochs.Keys()...); err == nil {
			s.epochs.Take(s.answer)
		}
	case 3:
		r := decodeRead[string](s.g, s.key, &s.cache.policy, s.answer, nil)
		if r.isJudged() {
			s.epochs.Compare(ctx, r.entry.Stamp)
		}
		now := &wanted[string]{key: s.key, mark: s.mark, read: s.answer, epochs: s.epochs, result: r}
		_, err = now.confirm(ctx, s.g, &loadSpec[string]{load: load{policy: &s.cache.policy}})
		if r = now.result; err == nil && s.late && r.state == fresh && *r.value == "old" {
			s.wrong = "the reader got the old value"
		}
	}
	return err
}

// check reads as callers do, once the writer has returned.
func (s *epochStage) check(ctx context.Context) error {
	if !s.over() {
		return nil
	}
	if item := s.g.local.Get(s.key); item != nil && *item.Value.(*string) == "old" {
		s.wrong = "the tier has the old value"
	}
	v, how, err := s.cache.ask(ctx, s.key[len("staged:"):])
	if how != Loaded && v == "old" {
		s.wrong = fmt.Sprintf("a Get after the invalidation returned the old value: %s", how)
	}
	return err
}

func TestNoOrderOfLoadsReadersAndAnInvalidationOfManyLeavesAStaleValueInRedis(t *testing.T) {
	t.Parallel()
	for name := range ofAnyTag {
		expect.Beside(t, [...]string{"of all", "of a kind", "of a tag"}[name], func(t *testing.T) {
			noOrderLeavesAStaleValueOf(t, name)
		})
	}
}

func noOrderLeavesAStaleValueOf(t *testing.T, name int) {
	t.Helper()
	ctx := context.Background()
	f := newFleet(t, standalone(t), 1, Config{RedisTimeout: bearing, TTL: time.Hour, Jitter: -1, Local: LocalConfig{MaxEntries: 1000, TTL: time.Hour}}).listening()
	g := f.guards[0]
	cache := newCaches(t, f, CacheConfig[string, string]{Name: "staged", Load: func(context.Context, string) (string, error) { return "new", nil }})[0]
	const readerSteps = 3
	play := func(order []int, known bool, evicts string) {
		id := rand.Text()
		s := &epochStage{g: g, cache: cache, key: "staged:" + id, tag: rand.Text(), source: "old", evicts: evicts}
		s.name = [...]string{epoch.All, epoch.OfKind("staged"), epoch.OfTag(s.tag)}[name]
		s.loads[0].known, s.loads[1].known = known, !known
		if evicts == epoch.OfTag("") {
			s.evicts = epoch.OfTag(s.tag)
		}
		for _, who := range order {
			var err error
			switch who {
			case aWriter:
				err = s.write(ctx)
			case load1, load2:
				err = s.load(ctx, &s.loads[who-load1])
			case aReader:
				err = s.get(ctx)
			case anEviction:
				err = s.evict(ctx)
			}
			expect.Must(t, err)
		}
		expect.Must(t, s.check(ctx))
		expect.Equal(t, fmt.Sprint(order, s.name[:1], known, evicts), s.wrong, "")
	}
	for _, evicts := range []string{"", epoch.OfTag(""), epoch.All} {
		some(sparsely(2003), []int{epochWriterSteps, epochLoadSteps, 0, readerSteps, 1}, func(n int, order []int) { play(order, n%2 == 0, evicts) })
	}
	some(sparsely(3001), []int{epochWriterSteps, epochLoadSteps, epochLoadSteps}, func(n int, order []int) { play(order, n%2 == 0, epoch.All) })
}
