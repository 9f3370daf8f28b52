package rules

import (
	"fmt"
	"math/big"
	"net/http"
	"testing"
	"time"

	"github.com/cacheguard/go/middleware/internal/record"
)

// judge computes freshness by RFC 9111 section 4.2 in whole seconds, without bounds. It shares no code with this package.
type judge struct {
	received, elapsed        int64  // Unix seconds
	date, expires, modified  *int64 // Unix seconds; nil: there is none
	age, maxAge, swr, sie    *big.Int
	keepHeuristic            bool
	staleness, lifetime, old *big.Int
}

func (j *judge) rule() {
	n := big.NewInt
	sent := j.received
	apparent := n(0)
	if j.date != nil {
		sent = *j.date
		if apparent.Sub(n(j.received), n(sent)); apparent.Sign() < 0 {
			apparent = n(0)
		}
	}
	j.old = apparent
	if j.age != nil && j.age.Cmp(j.old) > 0 {
		j.old = j.age
	}
	j.old = new(big.Int).Add(j.old, n(j.elapsed))
	switch {
	case j.maxAge != nil:
		j.lifetime = j.maxAge
	case j.expires != nil:
		j.lifetime = new(big.Int).Sub(n(*j.expires), n(sent))
	case j.keepHeuristic && j.modified != nil && *j.modified < j.received: // the whole time since then, at most a day
		if j.lifetime = new(big.Int).Sub(n(j.received), n(*j.modified)); j.lifetime.Cmp(n(24*60*60)) > 0 {
			j.lifetime = n(24 * 60 * 60)
		}
	default:
		j.lifetime = n(0)
	}
	j.staleness = new(big.Int).Sub(j.old, j.lifetime)
}

// FuzzFreshness looks for times and ages with which a response counts as fresher than it is.
func FuzzFreshness(f *testing.F) {
	const now, first, last = 1782864000, -62135596800, 253402300799 // 2026, year 1, year 9999
	f.Add(int64(now), int64(first), int64(0), uint64(1), uint64(0), uint64(0), uint64(0), uint16(0b000111))
	f.Add(int64(last), int64(now+60), int64(0), uint64(1), uint64(0), uint64(0), uint64(0), uint16(0b000111))
	f.Add(int64(first), int64(last), int64(0), uint64(0), uint64(0), uint64(600), uint64(600), uint16(0b110011))
	f.Add(int64(first), int64(0), int64(first), uint64(0), uint64(60), uint64(60), uint64(60), uint16(0b111001))
	f.Add(int64(now), int64(0), int64(first), uint64(0), uint64(0), uint64(0), uint64(1<<40), uint16(0b000000))
	f.Add(int64(now), int64(now-9e9), int64(now), uint64(1<<63), uint64(1<<62), uint64(1<<62), uint64(1<<62), uint16(0b111111))
	f.Fuzz(func(t *testing.T, date, expires, modified int64, age, maxAge, stale, elapsed uint64, has uint16) {
		j := judge{received: now, elapsed: int64(elapsed % (1 << 40)), keepHeuristic: true}
		h := make(http.Header)
		set := func(bit int, field string, seconds int64) *int64 {
			at := time.Unix(seconds, 0).UTC()
			if has&(1<<bit) == 0 || at.Year() < 0 || at.Year() > 9999 {
				return nil
			}
			h.Set(field, at.Format(http.TimeFormat))
			return &seconds
		}
		j.date, j.expires, j.modified = set(0, "Date", date), set(1, "Expires", expires), set(6, "Last-Modified", modified)
		if has&4 != 0 {
			h.Set("Age", fmt.Sprint(age))
			j.age = new(big.Int).SetUint64(age)
		}
		control := "public"
		if has&8 != 0 {
			control += fmt.Sprintf(", max-age=%d", maxAge)
			j.maxAge = new(big.Int).SetUint64(maxAge)
		}
		j.swr, j.sie = new(big.Int), new(big.Int)
		if has&16 != 0 {
			control += fmt.Sprintf(", stale-while-revalidate=%d", stale)
			j.swr.SetUint64(stale)
		}
		if has&32 != 0 {
			control += fmt.Sprintf(", stale-if-error=%d", stale)
			j.sie.SetUint64(stale)
		}
		h.Set("Cache-Control", control)
		j.rule()
		compare(t, h, &j)
	})
}

// compare compares what the package says about the header with what the judge says.
func compare(t *testing.T, h http.Header, j *judge) {
	settings := Settings{Heuristic: 1, KeepFor: time.Minute, StaleIfError: -1}
	received := time.Unix(j.received, 0)
	r := &http.Request{Method: http.MethodGet}
	got := settings.Assess(r, Reply{Status: http.StatusOK, Header: h, Sent: received, Received: received})
	rec := record.Record{Kind: record.Stored, Status: http.StatusOK, Received: received, Terms: got.Terms}
	now := time.Unix(j.received+j.elapsed, 0)
	usable := func(within *big.Int) bool { return j.staleness.Cmp(within) < 0 }
	never := func(what string, is, may bool) {
		if is && !may {
			t.Errorf("%s, but it is %v s old, and was fresh for %v s: %v", what, j.old, j.lifetime, h)
		}
	}
	never("fresh", rec.Fresh(now) > 0, usable(new(big.Int)))
	never("servable", rec.Servable(now), usable(new(big.Int)) || usable(j.swr))
	never("may stand in", rec.MayStandIn(0, now), usable(new(big.Int)) || usable(j.sie))
	after := new(big.Int).Add(j.swr, new(big.Int).Add(j.sie, big.NewInt(int64(Longest/time.Second)+60)))
	never("kept", settings.Keep(&rec.Terms, h) > 0 && j.elapsed == 0, usable(after))
	never("young", rec.Age(now) < 0, false)

	// Where nothing is extreme, both agree.
	longest := big.NewInt(int64(Longest / time.Second))
	if j.old.CmpAbs(longest) > 0 || j.lifetime.CmpAbs(longest) > 0 || j.swr.Cmp(longest) > 0 || j.sie.Cmp(longest) > 0 {
		return
	}
	if age := int64(rec.Age(now) / time.Second); age != j.old.Int64() {
		t.Errorf("%d s old, want %v: %v", age, j.old, h)
	}
	if fresh := int64(rec.Fresh(now) / time.Second); fresh != -j.staleness.Int64() {
		t.Errorf("fresh for %d s, want %v: %v", fresh, -j.staleness.Int64(), h)
	}
}
