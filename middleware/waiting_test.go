package middleware

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// waiters is how many calls wait for the load of another.
const waiters = 3

// whole is what the load returns, where it returns a value.
const whole = "what was loaded"

var errGone = errors.New("the thing is gone")

// thing goes through the Codec.
type thing struct{ Text string }

// refusing is a Codec that encodes nothing.
type refusing struct{}

func (refusing) Marshal(any) ([]byte, error) { return nil, errors.New("nothing is encoded") }
func (refusing) Unmarshal([]byte, any) error { return errors.New("nothing is decoded") }

// coded is an error whose type travels, by codes.
type coded int

func (e coded) Error() string { return "status " + strconv.Itoa(int(e)) }

type codes struct{}

func (codes) EncodeError(err error) []byte {
	var e coded
	if errors.As(err, &e) {
		return []byte(strconv.Itoa(int(e)))
	}
	return nil
}

func (codes) DecodeError(data []byte) error {
	if n, err := strconv.Atoi(string(data)); err == nil {
		return coded(n)
	}
	return nil
}

// ending is a way in which a load ends: what load returns, or what page writes, once the test lets it.
type ending struct {
	load func(ctx context.Context, text string) (thing, error)
	page http.HandlerFunc
	text string // of the value; empty: whole

	guard func(*cacheguard.Config)
	timed bool // LoadTimeout ends it, and not the test
	late  bool // it goes on after that
	full  bool // Redis has no memory left by then
	past  bool // the key is invalidated meanwhile

	absent bool
	fails  bool
	as     error            // what the failure matches; nil: nothing
	carry  bool             // by what a Cache has for that
	status int              // of a page
	rounds map[string][]int // how many loads run together, one round after the other, by place; nil: one
}

var (
	alone = []int{1}
	apart = []int{1, waiters} // nothing can be handed over: each instance that waits loads once, and all at the same time
	none  = map[string][]int{"same": alone, "message": apart, "poll": apart}
	each  = map[string][]int{"same": apart, "message": apart, "poll": apart}
)

func value(_ context.Context, text string) (thing, error) { return thing{text}, nil }

func withTTL(ttl time.Duration) func(context.Context, string) (thing, error) {
	return func(ctx context.Context, text string) (thing, error) {
		cacheguard.SetTTL(ctx, ttl)
		return thing{text}, nil
	}
}

func withTags(tags ...string) func(context.Context, string) (thing, error) {
	return func(ctx context.Context, text string) (thing, error) {
		cacheguard.SetTags(ctx, tags...)
		return thing{text}, nil
	}
}

func failing(err error) func(context.Context, string) (thing, error) {
	return func(context.Context, string) (thing, error) { return thing{}, err }
}

func answering(status int, text, control string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if control != "" { // else no other request may have the response
			w.Header().Set("Cache-Control", control)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text) // the client may have left
	}
}

func small(c *cacheguard.Config) { c.MaxValueBytes = 10 }

var large = strings.Repeat("large ", 2000) // for a message

var endings = map[string]ending{
	"stored":                 {load: value},
	"stored, large":          {load: value, text: large},
	"SetTTL 0":               {load: withTTL(0)},
	"SetTTL below 0":         {load: withTTL(-time.Second)},
	"SetTTL 0, large":        {load: withTTL(0), text: large, rounds: none},
	"TTL -1":                 {load: value, guard: func(c *cacheguard.Config) { c.TTL = -1 }},
	"257 tags":               {load: withTags(tagsOf(257)...)},
	"a tag too long":         {load: withTags("a", strings.Repeat("t", 513), "")},
	"MaxValueBytes":          {load: value, guard: small},
	"MaxValueBytes, large":   {load: value, guard: small, text: large, rounds: none},
	"a Codec that refuses":   {load: value, guard: func(c *cacheguard.Config) { c.Codec = refusing{} }, rounds: none},
	"absent":                 {load: failing(cacheguard.ErrNotFound), absent: true},
	"absent, not remembered": {load: failing(cacheguard.ErrNotFound), absent: true, guard: func(c *cacheguard.Config) { c.NegativeTTL = -1 }},
	"error":                  {load: failing(errors.New("no such table")), fails: true},
	"error by name":          {load: failing(fmt.Errorf("query: %w", errGone)), fails: true, as: errGone, carry: true},
	"error by ErrorCodec":    {load: failing(fmt.Errorf("query: %w", coded(409))), fails: true, as: coded(409), carry: true},
	"panic":                  {load: func(context.Context, string) (thing, error) { panic("not today") }, fails: true},
	"Goexit":                 {load: func(context.Context, string) (thing, error) { runtime.Goexit(); panic("gone") }, fails: true},
	"LoadTimeout":            {load: func(ctx context.Context, _ string) (thing, error) { return thing{}, ctx.Err() }, timed: true, fails: true, as: context.DeadlineExceeded},
	"LoadTimeout, own word":  {load: failing(errors.New("cancelled")), timed: true, fails: true, as: context.DeadlineExceeded},
	"LoadTimeout, late":      {load: value, timed: true, late: true, fails: true, as: context.DeadlineExceeded},
	"invalidated":            {load: value, past: true, rounds: map[string][]int{"same": {1, 1}, "message": {2}, "poll": {2}}},
	"refused by Redis":       {load: value, full: true},

	"page 200":               {page: answering(200, whole, "max-age=60"), status: 200},
	"page 200, large":        {page: answering(200, large, "max-age=60"), status: 200, text: large},
	"page 404":               {page: answering(404, whole, "max-age=60"), status: 404},
	"page 500":               {page: answering(500, whole, "max-age=60"), status: 500},
	"page 503":               {page: answering(503, whole, "max-age=60"), status: 503},
	"page 404 for one":       {page: answering(404, whole, ""), status: 404, rounds: each},
	"page 500 for one":       {page: answering(500, whole, ""), status: 500, rounds: each},
	"page 503 for one":       {page: answering(503, large, ""), status: 503, text: large, rounds: each},
	"page that panics":       {page: func(http.ResponseWriter, *http.Request) { panic("not today") }, status: 500},
	"page after LoadTimeout": {page: answering(200, whole, "max-age=60"), timed: true, status: 504},
	"page refused by Redis":  {page: answering(200, whole, "max-age=60"), status: 200, full: true},
}

func tagsOf(n int) (tags []string) {
	for i := range n {
		tags = append(tags, "t"+strconv.Itoa(i))
	}
	return tags
}

// wait is a way to wait.
type wait struct {
	place string // same: on the instance that loads; message, poll: on others
	call  func(c *cell, ctx context.Context, instance int) (string, error)
	guard func(*cacheguard.Config)
	cache bool // it is a Cache's
	page  bool
	own   bool // those who wait are of another Version, one of which loads, too
	twice bool // others join them when they have asked
}

var waits = map[string]wait{
	"Get, same instance":     {place: "same", call: (*cell).get, cache: true},
	"Get":                    {place: "message", call: (*cell).get, cache: true},
	"Get that polls":         {place: "poll", call: (*cell).get, cache: true},
	"Get that joins":         {place: "message", call: (*cell).get, cache: true, twice: true},
	"GetMany that joins":     {place: "message", call: (*cell).getMany, cache: true, twice: true},
	"GetMany, same instance": {place: "same", call: (*cell).getMany, cache: true},
	"GetMany":                {place: "message", call: (*cell).getMany, cache: true},
	"GetMany that polls":     {place: "poll", call: (*cell).getMany, cache: true},
	"Fetch, same instance":   {place: "same", call: (*cell).fetch},
	"Fetch":                  {place: "message", call: (*cell).fetch},
	"Fetch that polls":       {place: "poll", call: (*cell).fetch},
	"with a tier": {place: "message", call: (*cell).get, cache: true, guard: func(c *cacheguard.Config) {
		c.Local = cacheguard.LocalConfig{MaxEntries: 100, MaxLag: redistest.Patience}
	}},
	"with StaleFor":       {place: "message", call: (*cell).get, cache: true, guard: func(c *cacheguard.Config) { c.StaleFor = time.Hour }},
	"another Version":     {place: "message", call: (*cell).get, cache: true, own: true},
	"page, same instance": {place: "same", call: (*cell).getPage, page: true},
	"page":                {place: "message", call: (*cell).getPage, page: true},
	"page that polls":     {place: "poll", call: (*cell).getPage, page: true},
}

// What a load returns reaches whoever waits for it, on every instance, whether it is stored or not: every way in which a load ends, and every way in
// which somebody waits. A round of loads is a unit of time: all that run at once, held until they do.
func TestWhatALoadReturnsReachesWhoeverWaitsForIt(t *testing.T) {
	t.Parallel()
	for how, e := range endings {
		for who, w := range waits {
			if (e.page != nil) != w.page || !expect.Drawn(5) {
				continue
			}
			t.Run(how+"/"+who, func(t *testing.T) {
				t.Parallel()
				for range 3 {
					if newCell(t, e, w).run() {
						return
					}
				}
				t.Error("the load ended three times before all waited for it")
			})
		}
	}
}

// cell is a case of the table.
type cell struct {
	ending
	wait

	t      *testing.T
	redis  *redistest.Server
	prefix string
	guards []*cacheguard.Guard
	caches []*cacheguard.Cache[string, thing]
	pages  []http.Handler
	waits  atomic.Int64 // tasks of waiting
	damage atomic.Int64

	mu    sync.Mutex
	begun []chan struct{} // one for each load; closed when it may end
	freed int             // of them
	over  bool            // no load is held any more
}

func newCell(t *testing.T, e ending, w wait) *cell {
	c := &cell{ending: e, wait: w, t: t, redis: shared, prefix: "test-" + rand.Text()}
	if c.text == "" {
		c.text = whole
	}
	if c.full {
		c.redis = redistest.Start(t)
	}
	instances := 1 + waiters
	if c.place == "same" {
		instances = 1
	}
	for i := range instances {
		c.open(i)
	}
	t.Cleanup(func() { c.free(c.loads(), true) }) // or Close would wait for ever
	return c
}

// open starts an instance.
func (c *cell) open(i int) {
	cfg := cacheguard.Config{
		Prefix: c.prefix, RedisTimeout: redistest.Patience, LeaseTTL: redistest.Patience, HedgeAfter: -1, TTL: time.Hour, NegativeTTL: time.Hour,
		LoadTimeout: time.Hour,
	}
	cfg.Observers = []cacheguard.Observer{cacheguard.ObserverFunc(func(_ context.Context, e cacheguard.Event) {
		switch e.What {
		case cacheguard.EventDamaged, cacheguard.EventUnread, cacheguard.EventAlien:
			c.damage.Add(1)
		}
	})}
	cfg.Hooks.Begin = func(ctx context.Context, task cacheguard.Task, _ []string) (context.Context, func(cacheguard.End)) {
		if task == cacheguard.TaskWait {
			c.waits.Add(1)
		}
		return ctx, nil
	}
	if c.timed {
		cfg.LoadTimeout = redistest.Brisk
	}
	for _, set := range []func(*cacheguard.Config){c.ending.guard, c.wait.guard} {
		if set != nil {
			set(&cfg)
		}
	}
	var as []func(*redis.Options)
	if i > 0 && c.place == "poll" {
		as = append(as, c.redis.As(c.t, "~*", "&*", "+@all", "-subscribe", "-psubscribe", "-ssubscribe"))
	}
	g, err := cacheguard.New(c.redis.Client(c.t, as...), cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = g.Close() }) // always nil
	things := cacheguard.CacheConfig[string, thing]{
		Name: "thing", Load: c.loadThing, LoadMany: c.loadThings, Errors: map[string]error{"gone": errGone}, ErrorCodec: codes{},
	}
	if c.own {
		things.Version = 1 + min(i, 1)
	}
	cache, err := cacheguard.NewCache(g, things)
	if err != nil {
		c.t.Fatal(err)
	}
	pages, err := New(g, Config{})
	if err != nil {
		c.t.Fatal(err)
	}
	c.guards, c.caches, c.pages = append(c.guards, g), append(c.caches, cache), append(c.pages, pages.Handler(http.HandlerFunc(c.loadPage)))
}

// loads is a load: it begins, and ends when it may.
func (c *cell) hold(ctx context.Context) {
	free := make(chan struct{})
	c.mu.Lock()
	c.begun = append(c.begun, free)
	over := c.over
	c.mu.Unlock()
	switch {
	case c.timed && !c.late:
		<-ctx.Done()
	case !over:
		<-free
	}
}

func (c *cell) loads() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.begun)
}

// free lets the first n loads end; over: and all that begin from now on, of which there should be none.
func (c *cell) free(n int, over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = over
	for ; c.freed < n; c.freed++ {
		close(c.begun[c.freed])
	}
}

func (c *cell) loadThing(ctx context.Context, key string) (thing, error) {
	if key != "k" {
		return thing{}, nil
	}
	c.hold(ctx)
	return c.load(ctx, c.text)
}

func (c *cell) loadThings(ctx context.Context, keys []string) (map[string]thing, error) {
	all := make(map[string]thing, len(keys))
	for _, key := range keys {
		v, err := c.loadThing(ctx, key)
		if err != nil && !errors.Is(err, cacheguard.ErrNotFound) {
			return nil, err
		}
		if err == nil {
			all[key] = v
		}
	}
	return all, nil
}

func (c *cell) loadPage(w http.ResponseWriter, r *http.Request) {
	c.hold(r.Context())
	c.ending.page(w, r)
}

func (c *cell) get(ctx context.Context, instance int) (string, error) {
	v, err := c.caches[instance].Get(ctx, "k")
	return v.Text, err
}

func (c *cell) getMany(ctx context.Context, instance int) (string, error) {
	all, err := c.caches[instance].GetMany(ctx, []string{"k", rand.Text()})
	v, found := all["k"]
	if err == nil && !found {
		err = cacheguard.ErrNotFound
	}
	return v.Text, err
}

func (c *cell) fetch(ctx context.Context, instance int) (string, error) {
	v, _, err := cacheguard.Fetch(ctx, c.guards[instance], "k", cacheguard.Source[thing]{
		Load: func(ctx context.Context, _ *thing) (thing, error) { return c.loadThing(ctx, "k") },
	})
	return v.Text, err
}

// getPage returns the body of a page with its own status.
func (c *cell) getPage(ctx context.Context, instance int) (text string, err error) {
	defer func() {
		if recover() != nil { // as the client whose request called the handler has it
			text, err = c.text, nil
		}
	}()
	w := httptest.NewRecorder()
	c.pages[instance].ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "http://shop.example/page", nil))
	if w.Code != c.status {
		err = fmt.Errorf("status %d", w.Code)
	}
	if c.status == http.StatusGatewayTimeout || c.status == http.StatusInternalServerError && err == nil {
		return c.text, err
	}
	return w.Body.String(), err
}

// run goes through the case. Not done: the load ended before all waited for it.
func (c *cell) run() (done bool) {
	first, others := make(chan error, 1), make(chan error, 2*waiters)
	call := func(instance int, to chan error) {
		go func() { to <- c.check(c.call(c, context.Background(), instance)) }() // owner: the test, which receives
	}
	call(0, first)
	redistest.Await(c.t, "a load begins", func() bool { return c.loads() == 1 })
	called := 0
	for _, waiting := range []func() bool{c.waiting, c.joined} {
		for i := 0; i < waiters && (called < waiters || c.twice); i++ {
			call(min(1+i, len(c.guards)-1), others)
			called++
		}
		redistest.Await(c.t, "all wait", func() bool { return waiting() || c.timed && len(first) > 0 })
		if !waiting() {
			return false
		}
	}
	c.during()
	rounds := c.roundsOf()
	for begun := 0; len(rounds) > 0 && !c.timed; rounds = rounds[1:] {
		begun += rounds[0]
		redistest.Await(c.t, fmt.Sprintf("%d loads have begun", begun), func() bool { return c.loads() == begun })
		c.free(begun, len(rounds) == 1)
	}
	all := []error{<-first}
	for range called {
		all = append(all, <-others)
	}
	expect.ErrorIs(c.t, errors.Join(all...))
	want := 0
	for _, n := range c.roundsOf() {
		want += n
	}
	expect.Equal(c.t, "loads", c.loads(), want)
	expect.Equal(c.t, "damage", c.damage.Load(), 0)
	return true
}

// waiting reports whether all calls but those that load wait for one of those.
func (c *cell) waiting() bool {
	n := waiters
	if c.own {
		n--
	}
	if c.place != "message" {
		return c.waits.Load() >= int64(n)
	}
	rdb, registered := c.redis.Client(c.t), 0
	for _, key := range rdb.Keys(context.Background(), c.prefix+"*:lease").Val() {
		for _, field := range rdb.HKeys(context.Background(), key).Val() {
			if strings.HasPrefix(field, "inbox:") {
				registered++
			}
		}
	}
	return registered == n
}

// joined reports whether all that are to join the flights of those who wait have.
func (c *cell) joined() bool { return !c.twice || c.waits.Load() >= 2*waiters }

// during is what happens while all wait.
func (c *cell) during() {
	if c.past {
		expect.ErrorIs(c.t, c.guards[0].Invalidate(c.t.Context(), "k", "thing:k"))
	}
	if c.full {
		expect.ErrorIs(c.t, c.redis.Client(c.t).ConfigSet(c.t.Context(), "maxmemory", "1").Err())
	}
}

// roundsOf are the rounds of loads. Another Version has a load of its own in the first, and one caller less who waits.
func (c *cell) roundsOf() []int {
	rounds := slices.Clone(c.rounds[c.place])
	if rounds == nil {
		rounds = slices.Clone(alone)
	}
	if c.own {
		rounds[0]++
		for i := range rounds[1:] {
			rounds[1+i] = min(rounds[1+i], waiters-1)
		}
	}
	return rounds
}

// check says what is wrong with an answer.
func (c *cell) check(text string, err error) error {
	switch {
	case c.absent && errors.Is(err, cacheguard.ErrNotFound), !c.absent && !c.fails && err == nil && text == c.text:
		return nil
	case c.fails && err != nil && (c.as == nil || c.carry && !c.cache || errors.Is(err, c.as)):
		return nil
	}
	return fmt.Errorf("answered %.40q, %w", text, err)
}
