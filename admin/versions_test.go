package admin

import (
	"context"
	"crypto/rand"
	"net/http"
	"strings"
	"testing"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestALookUpShowsWhatEachVersionOfAProgramHas(t *testing.T) {
	t.Parallel()
	prefix := "test-" + rand.Text()
	var guards []*cacheguard.Guard
	for version := range 3 { // 0: without one
		g := newGuard(t, cacheguard.Config{Prefix: prefix})
		guards = append(guards, g)
		products, err := cacheguard.NewCache(g, cacheguard.CacheConfig[int, string]{
			Name: "product", Version: version, Load: func(context.Context, int) (string, error) { return "boot", nil },
		})
		expect.ErrorIs(t, err)
		if version > 0 {
			_, err = products.Get(t.Context(), 1)
			expect.ErrorIs(t, err)
		}
	}
	h := New(guards...)
	var found foundKey
	redistest.Await(t, "both versions are stored", func() bool {
		parse(t, get(t, h, "/?view=key&guard=0&key=product:1", http.StatusOK), &found)
		return len(found.Versions) == 2 && found.Versions[0].State == "fresh" && found.Versions[1].State == "fresh"
	})
	expect.Equal(t, "without a version", found.State, "missing")
	expect.Equal(t, "versions", found.Versions[0].Version+found.Versions[1].Version, 1+2)
	for _, line := range []string{`"product:1" without a version: missing`, "version 1: fresh", "version 2: fresh"} {
		if !strings.Contains(found.Text, line) {
			t.Errorf("%q is not in %s", line, found.Text)
		}
	}
}
