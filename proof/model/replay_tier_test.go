package model

import (
	"fmt"
	"maps"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/cache/tier"
	"github.com/cacheguard/go/internal/testing/replay"
)

// tierWorld replays runs of tier.pml: a local tier, and a Redis whose notices reach it when the run says. The tier's timers run in
// a bubble of synctest. Redis is outside, where the time is real.
type tierWorld struct {
	*scriptWorld
	tier    *tier.Tier
	notices *tier.Notices
	edit    func(notice string) string // a mistake
	heard   *redis.PubSub
	outside func(func())
	held    map[int]string // notices under way, by their number in the model
	source  int            // the version that there is
	sent    int
	up      bool
	mark    tier.Mark
	read    int
}

func newTierWorld(t *testing.T, outside func(func()), edit func(string) string) *tierWorld {
	w := &tierWorld{outside: outside, edit: edit, held: make(map[int]string), up: true}
	outside(func() {
		w.scriptWorld = newScriptWorld(t, replay.AsIs)
		w.heard = w.rdb.Subscribe(w.ctx, w.space.Channel)
		if _, err := w.heard.Receive(w.ctx); err != nil {
			w.Wrong("SUBSCRIBE: %v", err)
		}
	})
	var err error
	if w.tier, err = tier.New(tier.Limits{MaxEntries: 100, TTL: time.Hour}, func() bool { return w.up }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.tier.Close)
	w.notices = tier.NewNotices(w.space.Channel, 1)
	w.hear(w.notices.NextOfMany(0, "of another key")) // the model begins with a source that was heard
	w.write(1)
	return w
}

func (w *tierWorld) hear(notice string) {
	w.tier.Hear(w.edit(notice), func(string) bool { return false })
}

// write has Redis store a version.
func (w *tierWorld) write(version int) {
	w.source = version
	w.outside(func() {
		a, err := protocol.ParseAcquired(w.run(w.space.Acquire(w.value, protocol.Request{Token: w.token(version), Take: true})))
		if err != nil {
			w.Wrong("acquire.lua: %v", err)
		}
		w.run(w.space.Fill(w.value, w.filling(w.token(version), a.Generation, version)))
	})
}

// invalidate sends a notice about the key, if its version is a new one, or about another.
func (w *tierWorld) invalidate(version int) (notice string) {
	about := func() string { return w.notices.NextOfMany(0, "of another key") }
	value := w.space.ValueKey("another")
	if version > w.source {
		about, value = func() string { return w.notices.Next(0, replayed) }, w.value
	}
	w.outside(func() {
		w.run(w.space.Invalidate(value, about()))
		m, err := w.heard.ReceiveMessage(w.ctx)
		if err != nil {
			w.Wrong("no notice: %v", err)
			return
		}
		notice = m.Payload
	})
	if version > w.source {
		w.write(version)
	}
	return notice
}

func (w *tierWorld) Do(step replay.Step) {
	switch step.Do[0] {
	case "mark":
		w.mark = w.tier.Mark(replayed)
	case "read":
		w.outside(func() { w.read, _ = strconv.Atoi(w.cached()) })
		if w.read != step.Number(1) {
			w.Wrong("GET returns version %d", w.read)
		}
	case "keep":
		w.tier.Keep(replayed, w.mark, new(tier.Item), w.read, 1, time.Hour, time.Hour)
	case "local":
		if got := w.served(); got != step.Do[1] {
			w.Wrong("the tier has version %s", got)
		}
	case "send", "lose":
		w.sent = step.Number(1)
		w.held[w.sent] = w.invalidate(step.Number(2))
	case "hear":
		w.hear(w.held[step.Number(1)])
	case "void":
		time.Sleep(2 * time.Second) // of the bubble: the feed waits for one
		_ = w.tier.Mark(replayed)   // whoever asks gives it up
	case "repeat":
		w.hear(w.repetition())
	case "cut":
		w.up = false
	case "up":
		w.tier.Missed()
		w.hear(tier.Notice{Source: w.sourceName(), Number: uint64(w.sent) + 1, Key: "of another key", Many: true}.String())
		w.up = true
	}
}

func (w *tierWorld) sourceName() string {
	n, _ := tier.ParseNotice(tier.NewNotices("", 1).Next(0, ""))
	if held, ok := tier.ParseNotice(w.held[w.sent]); ok {
		n = held
	}
	return n.Source
}

// repetition is the last number, as Notices.Repeat says it.
func (w *tierWorld) repetition() string { return fmt.Sprintf("%s %d= 1", w.sourceName(), w.sent+1) }

func (w *tierWorld) served() string {
	if i := w.tier.Get(replayed); i != nil {
		return strconv.Itoa(i.Value.(int))
	}
	return "0"
}

func (w *tierWorld) State() map[string]string { return map[string]string{"served": w.served()} }

// tierRun replays a run on a tier that hears notices as they are edited.
func tierRun(t *testing.T, run []replay.Step, edit func(string) string) (wrong string) {
	t.Helper()
	for _, step := range run {
		if s := step.State; s != nil {
			if s["served"] = s["tier"]; s["up"] == "0" || s["heard"] != s["up_to"] {
				s["served"] = "0"
			}
		}
	}
	jobs, done := make(chan func()), make(chan struct{})
	go func() { // owner: this function; stop: jobs is closed
		for job := range jobs {
			job()
			done <- struct{}{}
		}
	}()
	defer close(jobs)
	synctest.Test(t, func(t *testing.T) {
		wrong = replay.Run(run, newTierWorld(t, func(job func()) { jobs <- job; <-done }, edit))
	})
	return wrong
}

func TestRunsOfTheModelOfLocalTiersAreRunsOfTiers(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"tier", "cut"} {
		for file, run := range replay.Drawn(t, name) {
			if wrong := tierRun(t, run, func(notice string) string { return notice }); wrong != "" {
				t.Errorf("%s: %s", file, wrong)
			}
		}
	}
}

func TestReplaysOfLocalTiersFindANoticeThatIsMisread(t *testing.T) {
	t.Parallel()
	for what, edit := range map[string]func(n *tier.Notice){
		"all notices are about another key": func(n *tier.Notice) { n.Many = true },
		"numbers are not followed":          func(n *tier.Notice) { n.Source += strconv.FormatUint(n.Number, 10) },
	} {
		found := ""
		for run := range maps.Values(replay.Drawn(t, "tier")) {
			found = tierRun(t, run, func(notice string) string {
				if n, ok := tier.ParseNotice(notice); ok {
					edit(&n)
					return n.String()
				}
				return notice
			})
			if found != "" {
				break
			}
		}
		if found == "" {
			t.Errorf("%s: the replays find nothing wrong", what)
		}
	}
}
