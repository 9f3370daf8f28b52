package chaos

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cacheguard/go/cacheguard"
)

const second = int64(time.Second)

// Each promise, and what trips it. The write 5 of a is invalidated from 10 s to 20 s by the Guard w.
func TestWhatIsWrongInALogIsFound(t *testing.T) {
	t.Parallel()
	a, after := "key:a", 21*second
	wrote := event{Kind: invalidated, Guard: "w", Scope: a, N: 5, From: 10 * second, To: 20 * second}
	of := func(kind, scope string) event {
		w := wrote
		w.Kind, w.Scope = kind, scope
		return w
	}
	dead := of(written, a)
	dead.How = "intent"
	for name, c := range map[string]struct {
		history []event
		change  func(*checker)
		promise string // empty: nothing is wrong
	}{
		"old, after":               {[]event{wrote, {Kind: got, Key: "a", N: 4, How: "shared", From: after}}, nil, readWrites},
		"old, from Redis":          {[]event{wrote, {Kind: got, Key: "a", N: 4, How: "hit", From: after}}, nil, staleFill},
		"old, beside":              {[]event{wrote, {Kind: got, Key: "a", N: 4, How: "hit", From: 19 * second, To: 30 * second}}, nil, ""},
		"new, after":               {[]event{wrote, {Kind: got, Key: "a", N: 6, How: "hit", From: after}}, nil, ""},
		"another row":              {[]event{wrote, {Kind: got, Key: "b", N: 4, How: "hit", From: after}}, nil, ""},
		"of a put":                 {[]event{wrote, {Kind: got, Key: "a", N: 4, How: "hit", By: "put", From: after}}, nil, puts},
		"of another version":       {[]event{of(invalidated, "key:thing:1"), {Kind: got, Key: "thing:1", N: 4, How: "hit", Version: 2, Stored: 2, From: after}}, nil, versions},
		"for another version":      {[]event{{Kind: got, Key: "a", N: 4, How: "hit", Version: 2, Stored: 1, From: after}}, nil, versions},
		"everything":               {[]event{of(invalidated, "all"), {Kind: got, Key: "a", N: 4, How: "hit", From: after}}, nil, many},
		"a kind":                   {[]event{of(invalidated, "kind:x"), {Kind: got, Key: "x:1", N: 4, How: "hit", From: after}}, nil, many},
		"another kind":             {[]event{of(invalidated, "kind:x"), {Kind: got, Key: "y:1", N: 4, How: "hit", From: after}}, nil, ""},
		"a tag":                    {[]event{of(invalidated, "tag:t1"), {Kind: got, Key: "a", N: 4, Tags: 3, How: "hit", From: after}}, nil, many},
		"another tag":              {[]event{of(invalidated, "tag:t2"), {Kind: got, Key: "a", N: 4, Tags: 3, How: "hit", From: after}}, nil, ""},
		"a view":                   {[]event{of(invalidated, "key:view:1"), {Kind: got, Key: "view:1", N: 4, How: "hit", From: after}}, nil, madeOf},
		"a view, pending here":     {[]event{of(pending, "key:view:1"), {Kind: got, Guard: "w", Key: "view:1", N: 4, How: "hit", From: after}}, nil, ""},
		"pending, here":            {[]event{of(pending, a), {Kind: got, Guard: "w", Key: "a", N: 4, How: "hit", From: after}}, nil, sentAgain},
		"pending, elsewhere":       {[]event{of(pending, a), {Kind: got, Guard: "x", Key: "a", N: 4, How: "hit", From: after}}, nil, ""},
		"another's tier":           {[]event{wrote, {Kind: got, Guard: "x", Key: "a", N: 4, How: "local", From: 30 * second}}, nil, tierDelay},
		"another's tier, early":    {[]event{wrote, {Kind: got, Guard: "x", Key: "a", N: 4, How: "local", From: after}}, nil, ""},
		"its own tier":             {[]event{wrote, {Kind: got, Guard: "w", Key: "a", N: 4, How: "local", From: after}}, nil, readWrites},
		"absent":                   {[]event{of(invalidated, "birth:7"), {Kind: absent, Key: "7", How: "hit", From: after}}, nil, absence},
		"not born yet":             {[]event{of(invalidated, "birth:7"), {Kind: absent, Key: "8", How: "hit", From: after}}, nil, ""},
		"after a dead writer":      {[]event{of(written, a), {Kind: got, Key: "a", N: 4, How: "hit", From: 30 * second}}, nil, survives},
		"after a dead transaction": {[]event{dead, {Kind: got, Key: "a", N: 4, How: "hit", From: 30 * second}}, nil, committed},
		"never committed":          {[]event{{Kind: got, Key: "a", N: 4, By: "transaction", How: "hit", From: after}}, nil, itsOwn},
		"before the intent ends":   {[]event{dead, {Kind: got, Key: "a", N: 4, How: "hit", From: after}}, nil, ""},
		"of a Get, for a Cache":    {[]event{{Kind: got, Key: "bulk:1", N: 4, By: "bare", How: "hit", From: after}}, nil, kinds},
		"of a Cache, for a Get":    {[]event{{Kind: got, Key: "bare:1", N: 4, How: "hit", From: after}}, nil, kinds},
		"of a Get, for a Get":      {[]event{{Kind: got, Key: "bare:1", N: 4, By: "bare", How: "hit", From: after}}, nil, ""},
		"after its Guard's cache was off": {
			[]event{wrote, {Kind: off, Guard: "w", From: 9 * second, To: 20 * second}, {Kind: got, Key: "a", N: 4, How: "hit", From: after}}, nil, turnedOn,
		},
		"before its intent ends": {
			[]event{of(written, a), {Kind: got, Key: "a", N: 4, How: "hit", From: after}}, nil, "",
		},
		"its writer was paused": {
			[]event{of(written, a), {Kind: starved, Guard: "w", From: 11 * second, To: 13 * second}, {Kind: got, Key: "a", N: 4, How: "hit", From: 30 * second}}, nil, "",
		},
		"in a failover":                {[]event{wrote, {Kind: got, Key: "a", N: 4, How: "hit", From: after}}, func(c *checker) { c.forgets = []span{{15 * second, 25 * second}} }, ""},
		"after a failover":             {[]event{wrote, {Kind: got, Key: "a", N: 4, How: "hit", From: 26 * second}}, func(c *checker) { c.forgets = []span{{15 * second, 25 * second}} }, staleFill},
		"an error that is wrong":       {[]event{{Kind: misjudged, From: 1, To: 2}}, nil, says},
		"a transaction that is behind": {[]event{{Kind: behind, From: 1, To: 2}}, nil, readWrites},
		"an error":                     {[]event{{Kind: failed, From: 1, To: 2}}, nil, nobodyPays},
		"an error in an outage": {
			[]event{{Kind: failed, From: 1, To: 2}}, func(c *checker) { c.breaks = []span{{0, 1}} }, reaches,
		},
		"an error of a process that stood still": {
			[]event{{Kind: starved, Guard: "w", From: 1, To: 40 * second}, {Kind: failed, Guard: "w.1", From: 1, To: 41 * second}}, nil, "",
		},
		"an error of a process that stood still for a moment": {
			[]event{{Kind: starved, Guard: "w", From: 1, To: 5 * second}, {Kind: failed, Guard: "w.1", From: 1, To: 41 * second}}, nil, nobodyPays,
		},
		"a call hangs":            {[]event{{Kind: late, Deadline: second, To: 9 * second}}, nil, ends},
		"a call is late":          {[]event{{Kind: late, Deadline: second, To: 2 * second}}, nil, ""},
		"a process stood still":   {[]event{{Kind: late, Guard: "w", Deadline: second, To: 9 * second}, {Kind: starved, Guard: "w", From: 2 * second, To: 8 * second}}, nil, ""},
		"a key astray":            {[]event{{Kind: astray, From: 1, To: 2}}, nil, eachOfMany},
		"old, of thousands":       {[]event{wrote, {Kind: got, Key: "a", N: 4, How: "hit", From: after, Many: 1000}}, nil, newOfMany},
		"two loads, of many":      {[]event{{Kind: loaded, Key: "q", From: 1, To: 5}, {Kind: loaded, Key: "q", From: 4, To: 9, Many: 1000}}, nil, oneOfMany},
		"two loads":               {[]event{{Kind: loaded, Key: "q", From: 1, To: 5}, {Kind: loaded, Key: "q", From: 4, To: 9}}, nil, oneLoad},
		"one after the other":     {[]event{{Kind: loaded, Key: "q", From: 1, To: 5}, {Kind: loaded, Key: "q", From: 6, To: 9}}, nil, ""},
		"two loads, beside Redis": {[]event{{Kind: repeats, From: 1, To: 5}, {Kind: loaded, Key: "q", From: 1, To: 5}, {Kind: loaded, Key: "q", From: 4, To: 9}}, nil, ""},
		"loads of two keys":       {[]event{{Kind: loaded, Key: "q", From: 1, To: 5}, {Kind: loaded, Key: "r", From: 4, To: 9}}, nil, ""},
		"an invalidation between loads": {
			[]event{wrote, {Kind: loaded, Key: "a", From: 9 * second, To: 25 * second}, {Kind: loaded, Key: "a", From: 20 * second, To: 26 * second}}, nil, "",
		},
	} {
		check := newChecker()
		check.keeps = true
		for i := range c.history {
			if e := &c.history[i]; e.Stored == 0 && c.promise != versions {
				e.Stored = e.Version
			}
		}
		if c.change != nil {
			c.change(check)
		}
		check.round(c.history)
		for _, promise := range promises {
			if found := len(check.found[promise]) > 0; found != (promise == c.promise) {
				t.Errorf("%s: %s: %v", name, promise, found)
			}
		}
	}
}

func TestWhatIsWrongIsFoundInALaterRound(t *testing.T) {
	t.Parallel()
	check := newChecker()
	check.round([]event{
		{Kind: invalidated, Scope: "key:a", N: 5, To: 20 * second}, {Kind: invalidated, Scope: "key:a", N: 4, To: 22 * second},
	})
	check.round([]event{{Kind: got, Key: "a", N: 4, How: "hit", From: 100 * second}})
	if len(check.found[staleFill]) != 1 {
		t.Errorf("found %v", check.found)
	}
}

func TestAMiscountIsFound(t *testing.T) {
	t.Parallel()
	for count, good := range map[int64]bool{0: false, 1: true, 2: true, 3: false} {
		if err := miscounted("lock", 2, 1, count); (err == nil) != good {
			t.Errorf("a count of %d: %v", count, err)
		}
	}
}

func TestAnErrorWithoutANameIsFound(t *testing.T) {
	t.Parallel()
	full := errors.New("OOM command not allowed")
	for name, err := range map[string]error{"bare": full, "of another call": &cacheguard.RedisError{Op: "get", Err: full}} {
		if isNamed(err) {
			t.Errorf("%s: %v has a name", name, err)
		}
	}
	if err := fmt.Errorf("a write: %w", errors.Join(errFaulty, &cacheguard.RedisError{Op: "invalidate", Err: full})); !isNamed(err) {
		t.Errorf("%v has none", err)
	}
}
