package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/cache/tier"
)

const (
	sampleEvery = 2 * time.Second // as often as the page takes samples
	pageTimeout = 5 * time.Second
	maxPage     = 8 << 20
)

// sampled is what was seen of a cache since the last sample: how often it was invalidated, by whomever, or what one instance does.
type sampled struct {
	Time        string  `json:"time"`
	Event       string  `json:"event"`       // sampled
	Cache       string  `json:"cache"`       // its name, which its keys begin with; empty: keys of no cache
	Invalidated int     `json:"invalidated"` // messages, an Update has two; 0 with an Instance, as they are of no instance
	Most        string  `json:"most"`        // what most of them were about, as watch names it; empty: there were none
	OfMost      int     `json:"of_most"`     // how many
	Instance    string  `json:"instance"`    // empty: what follows is not known, as no page was asked
	Gets        float64 `json:"gets_per_sec"`
	Ratio       float64 `json:"hit_ratio"` // -1: nobody asked
	Loads       float64 `json:"loads_per_sec"`
	Loading     int     `json:"loading"` // of the guard, as what follows
	Queued      int     `json:"queued"`
	Waiting     int     `json:"waiting"`
	Takeovers   uint64  `json:"takeovers"` // of the cache, so far

	Numbers map[string]float64 `json:"numbers,omitempty"` // all that there are of the guard
}

func (r sampled) rows() [][]string {
	name := r.Cache
	if name == "" {
		name = "(no cache)"
	}
	row := []string{r.Time, name, "invalidated " + strconv.Itoa(r.Invalidated)}
	if r.Most != "" {
		row[2] += fmt.Sprintf(", %d of them %s", r.OfMost, r.Most)
	}
	if r.Instance == "" {
		return [][]string{row}
	}
	return [][]string{append(row[:2], r.Instance, fmt.Sprintf("gets/s %.1f", r.Gets), "hits "+percent(r.Ratio), fmt.Sprintf("loads/s %.1f", r.Loads),
		fmt.Sprintf("loading %d", r.Loading), fmt.Sprintf("queued %d", r.Queued), fmt.Sprintf("waiting %d", r.Waiting),
		fmt.Sprintf("takeovers %d", r.Takeovers))}
}

// mostNames is of how many names of a cache a sample knows how often they were invalidated.
const mostNames = 10_000

// invalidations are the invalidations of a cache since the last sample.
type invalidations struct {
	n     int
	names map[string]int
}

func (c *invalidations) add(name string) {
	c.n++
	if c.names == nil {
		c.names = make(map[string]int)
	}
	if _, known := c.names[name]; known || len(c.names) < mostNames {
		c.names[name]++
	}
}

// to adds what was counted to a sample.
func (c *invalidations) to(s sampled) sampled {
	if c == nil {
		return s
	}
	s.Invalidated = c.n
	for _, name := range slices.Sorted(maps.Keys(c.names)) {
		if n := c.names[name]; n > s.OfMost {
			s.Most, s.OfMost = name, n
		}
	}
	return s
}

// paged is a part of what a page of package admin says. Durations are in seconds.
type paged struct {
	Guards  []pagedGuard
	Lockers []struct {
		Prefix, Kind, Instance string
		Deaf                   bool
		Locks                  []struct {
			Name, Mode, Token string
			For               float64
		}
	}
	Pages   []pagedPages
	Feeds   []feed
	Reports []report
}

type pagedGuard struct {
	Prefix, Instance, Refused string
	Redis                     string // where it is, for people; empty: it does not say
	Bypassed                  string // on which instances, and until when; empty: it does not say
	DeafAs                    string `json:"deaf_as"`
	Troubles                  map[string]float64
	Order                     []string // their names, causes first; nil: it does not say
	Cause                     string   // which of them brings others; empty: none, or it does not say
	Brought                   []string // which ones, if they are there
	Loading, Queued, Waiting  int
	MaxLoads                  int `json:"max_loads"`
	BreakersOpen              int `json:"breakers_open"`
	Intents                   int
	Stands                    string `json:"oldest_intent_of"` // empty: it does not say
	Warming                   int
	Refreshes                 uint64            `json:"failed_refreshes"`
	Tags, Keys                []string          // the kinds that loads have had; nil: it does not say
	NoTags                    map[string]uint64 `json:"unknown_tags"`
	NoKeys                    map[string]uint64 `json:"unknown_keys"`

	NoTagsAgo map[string]float64 `json:"unknown_tags_ago"` // when they were invalidated last; nil: it does not say
	NoKeysAgo map[string]float64 `json:"unknown_keys_ago"`

	Running []pagedLoad   // the longest first
	Hot     []pagedHot    // the hottest first
	Numbers []pagedNumber // of a page of an earlier version: none
	Caches  []pagedCache
}

// pagedLoad is a load that runs.
type pagedLoad struct {
	Key   string
	Took  float64
	Began string // empty: it does not say
}

// pagedHot is a key that an instance is asked for often.
type pagedHot struct {
	Key  string
	Rate float64
}

// numbers has the numbers of the Guard by name.
func (g *pagedGuard) numbers() map[string]float64 {
	all := make(map[string]float64, len(g.Numbers))
	for _, n := range g.Numbers {
		all[n.Name] = n.Value
	}
	return all
}

// pagedNumber is one of the numbers of a Guard.
type pagedNumber struct {
	Name, Help string
	Value      float64
}

type pagedCache struct {
	Name               string
	Rate, Ratio, Loads float64
	Takeovers          uint64
	Answers            map[string]uint64
	Lately             struct{ Damaged, Unstorable, Takeovers uint64 }
	LatelyAgo          map[string]float64 `json:"lately_ago"` // of a page of an earlier version: nil
	Failing            *struct {
		For           float64
		Loads, Failed uint64
		Last          string
	}
}

// of returns the Guards with the Prefix.
func (p *paged) of(prefix string) (all []*pagedGuard) {
	for i := range p.Guards {
		if p.Guards[i].Prefix == prefix {
			all = append(all, &p.Guards[i])
		}
	}
	return all
}

// label begins a finding about a Cache that has a name.
func (c *pagedCache) label() string {
	if c.Name == "" {
		return ""
	}
	return c.Name + ": "
}

// sample counts invalidations, and asks the pages, every now and then.
func (c *watch) sample(e *env) error {
	sub := e.rdb.Subscribe(e.ctx, channel(e))
	messages, lost := make(chan seen), make(chan error, 1)
	ctx, cancel := context.WithCancel(e.ctx)
	unhook := closeAtEnd(e, sub)
	var receiving sync.WaitGroup
	receiving.Go(func() { lost <- receive(ctx, sub, messages) }) // owner: sample; stop: cancel and Close; joined below
	defer func() {
		cancel()
		unhook()
		_ = sub.Close() // it may be closed
		receiving.Wait()
	}()
	every := c.Every
	if every == 0 {
		every = sampleEvery
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	invalidated := make(map[string]*invalidations)
	for n := 1; ; {
		select {
		case event := <-messages:
			if invalidated[event.cache] == nil {
				invalidated[event.cache] = new(invalidations)
			}
			invalidated[event.cache].add(event.Name)
		case err := <-lost:
			if e.ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("the subscription to %q: %w", channel(e), err)
		case <-tick.C:
			if err := c.printSamples(e, invalidated); err != nil {
				if e.ctx.Err() != nil {
					return nil
				}
				return err
			}
			if n == c.Count {
				return nil
			}
			n++
			clear(invalidated)
		case <-e.ctx.Done():
			return nil
		}
	}
}

// receive passes on what is invalidated.
func receive(ctx context.Context, sub *redis.PubSub, events chan<- seen) error {
	for {
		msg, err := sub.ReceiveMessage(ctx)
		if err != nil {
			return err
		}
		if tier.IsRepetition(msg.Payload) {
			continue // another message says that it is invalidated
		}
		select {
		case events <- read(msg.Payload):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// printSamples prints how often each cache was invalidated, and then what the pages say of each instance.
func (c *watch) printSamples(e *env, invalidated map[string]*invalidations) error {
	now := time.Now().UTC().Format(time.RFC3339)
	for _, cache := range slices.Sorted(maps.Keys(invalidated)) {
		if err := e.out.print(invalidated[cache].to(sampled{Time: now, Event: "sampled", Cache: cache, Ratio: -1})); err != nil {
			return err
		}
	}
	pages := e.lookAtAll(c.Page)
	for i := range pages {
		if pages[i].err != nil {
			return pages[i].err
		}
		for _, g := range pages[i].of(e.all.Prefix) {
			for _, cache := range g.Caches {
				if err := e.out.print(sampled{
					Time: now, Event: "sampled", Cache: cache.Name, Instance: g.Instance,
					Gets: cache.Rate, Ratio: cache.Ratio, Loads: cache.Loads, Loading: g.Loading, Queued: g.Queued, Waiting: g.Waiting,
					Takeovers: cache.Takeovers, Numbers: g.numbers(),
				}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// looked is what a page has said, or why it has not.
type looked struct {
	paged
	err error
}

// lookAtAll asks pages side by side, as some may not answer, and says whom it waits for.
func (e *env) lookAtAll(pages []string) []looked {
	all := make([]looked, len(pages))
	var asking sync.WaitGroup
	for i, page := range pages {
		asking.Go(func() { // owner: lookAtAll; stop: pageTimeout; joined below
			host := "?"
			if u, err := url.Parse(page); err == nil {
				host = u.Host
			}
			e.patiently("the page at "+host, func() { all[i].paged, all[i].err = lookAt(e.ctx, page) })
		})
	}
	asking.Wait()
	return all
}

// look is lookAtAll, once for a command: an instance that is stopped costs its time once.
func (e *env) look(pages []string) []looked {
	e.looking.Do(func() { e.looks = e.lookAtAll(pages) })
	return e.looks
}

// lookAt asks a page of package admin for its data.
func lookAt(ctx context.Context, page string) (p paged, err error) {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	return p, askPage(ctx, http.MethodGet, page, "view=data", &p)
}

// askPage asks a page of package admin. Its error does not repeat the URL, which may have a password.
func askPage(ctx context.Context, method, page, query string, into any) error {
	u, err := url.Parse(page)
	if err != nil || u.Host == "" || strings.Contains(u.Path+u.RawQuery+u.Fragment, "@") { // that began in a password
		return errors.New("--page: that is no URL, or its user or password needs escaping: / as %2F, ? as %3F, # as %23, @ as %40")
	}
	u.RawQuery = query
	r, err := http.NewRequestWithContext(ctx, method, u.String(), nil)
	if err != nil {
		return errors.New("--page: that is no URL")
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		var of *url.Error
		if errors.As(err, &of) {
			err = of.Err
		}
		return fmt.Errorf("--page at %s: %w", u.Host, err)
	}
	defer answer.Body.Close()
	body := io.LimitReader(answer.Body, maxPage)
	if answer.StatusCode != http.StatusOK {
		var said struct{ Error string }
		_ = json.NewDecoder(body).Decode(&said) // only pages of package admin say why
		return fmt.Errorf("--page at %s: %s", u.Host, strings.TrimSpace(answer.Status+" "+clean(said.Error)))
	}
	if err := json.NewDecoder(body).Decode(into); err != nil {
		return fmt.Errorf("--page at %s is not that of package admin: %w", u.Host, err)
	}
	return nil
}
