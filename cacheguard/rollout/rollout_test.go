package rollout

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

var shared *redistest.Server

func TestMain(m *testing.M) { redistest.Main(m, &shared) }

func (s *Shares) among(t *testing.T, kind string) map[string]bool {
	t.Helper()
	in := make(map[string]bool)
	for i := range 10_000 {
		key := fmt.Sprint(kind, ":", i)
		if err := s.Gate(t.Context(), key); err == nil {
			in[key] = true
		} else if !errors.Is(err, ErrNotYet) {
			t.Fatal(err)
		}
	}
	return in
}

func TestAShareIsAboutThatPercentageAndGrowsByKeys(t *testing.T) {
	t.Parallel()
	var s Shares
	expect.Equal(t, "of a kind that is not named", len(s.among(t, "product")), 0)
	before := map[string]bool{}
	for _, percent := range []float64{1, 10, 50, 100} {
		s.Set(map[string]float64{"product": percent})
		now := s.among(t, "product")
		if want := int(percent * 100); len(now) < want*7/10 || len(now) > want*13/10 {
			t.Errorf("%v percent are %d of 10,000", percent, len(now))
		}
		for key := range before {
			if !now[key] {
				t.Errorf("%s left as the share grew to %v", key, percent)
			}
		}
		before = now
	}
	expect.Equal(t, "another kind", len(s.among(t, "price")), 0)
	s.Off(true)
	expect.Equal(t, "off", len(s.among(t, "product")), 0)
	s.Off(false)
	s.Set(map[string]float64{"": 100, "product": 0})
	expect.Equal(t, "all others", len(s.among(t, "price")), 10_000)
	expect.Equal(t, "but one", len(s.among(t, "product")), 0)
}

func TestTheComparerFindsWhatIsOldBeforeTheCacheServesAnybody(t *testing.T) {
	t.Parallel()
	var shares Shares
	g, err := cacheguard.New(shared.Client(t), cacheguard.Config{Prefix: "test-compare", TTL: time.Hour, RedisTimeout: redistest.Patience, HedgeAfter: -1, Gate: shares.Gate})
	expect.Must(t, err)
	defer g.Close()
	rows, noRow := map[int]string{1: "lamp", 2: "chair"}, errors.New("no such row")
	load := func(_ context.Context, id int) (string, error) {
		if row, is := rows[id]; is {
			return row, nil
		}
		return "", noRow
	}
	products, err := cacheguard.NewCache(g, cacheguard.CacheConfig[int, string]{Name: "product", Load: load, NotFound: noRow})
	expect.Must(t, err)
	var old []string
	c := &Comparer[int, string]{
		Cache: products, Source: load, Equal: func(a, b string) bool { return a == b }, NotFound: noRow, Pause: time.Millisecond,
		OnOld: func(id int, cached, source string) { old = append(old, fmt.Sprint(id, cached, source)) },
	}
	all := func() {
		for id := 1; id <= 3; id++ {
			c.Compare(t.Context(), id, nil)
		}
	}
	all()
	expect.Equal(t, "cold", c.Seen(), Seen{Compared: 3})
	redistest.Await(t, "all is stored", func() bool {
		before := c.Seen().Hits
		all()
		return c.Seen().Hits == before+3
	})
	expect.Equal(t, "old", c.Seen().Old, 0)
	rows[2] = "armchair" // and nobody invalidates
	delete(rows, 1)
	before := "lamp"
	c.Compare(t.Context(), 1, &before)
	c.Compare(t.Context(), 2, nil)
	seen := c.Seen()
	expect.Equal(t, "old", seen.Old, 2)
	expect.Equal(t, "the other's", seen.OtherOld, 1)
	expect.Equal(t, "told", fmt.Sprint(old), "[2chairarmchair]")
	if _, how, err := products.Peek(t.Context(), 2); !errors.Is(err, cacheguard.ErrNotCached) || how != "" {
		t.Error("somebody is served", how, err)
	}
}
