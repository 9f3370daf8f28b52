package middleware

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/expect"
)

// Keys of long URLs are shortened. A URL with a # in its query must not be able to spell such a key.
func TestNoURLSpellsTheShortenedKeyOfAnother(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{}, echo)
	long := "/pay?to=" + strings.Repeat("x", 600)
	key := "page://" + host + long
	sum := sha256.Sum256([]byte(key))
	attack := strings.TrimPrefix(key[:256], "page://"+host) + "#" + hex.EncodeToString(sum[:16])
	evil := f.raw(t, "GET "+attack+" HTTP/1.1").body
	if victim := f.get(long).body; victim == evil || !strings.Contains(victim, long) {
		t.Errorf("a request for %s is answered with %s", long, victim)
	}
}

// Even if two pages had the same key, a record would be served only for the URL that it names.
func TestARecordOfAnotherURLIsNotServed(t *testing.T) {
	t.Parallel()
	p := newPage(says("page", fresh))
	f := newFleet(t, 1, Config{}, p)
	f.warm("/other")
	read := func(path string) ([]byte, error) {
		raw, _, err := cacheguard.Fetch(t.Context(), f.guards[0], f.pageKey(path), cacheguard.Source[[]byte]{})
		return raw, err
	}
	other, err := read("/other")
	if err != nil {
		t.Fatal(err)
	}
	_, err = cacheguard.Get(t.Context(), f.guards[0], f.pageKey("/"), func(context.Context) ([]byte, error) { return other, nil })
	if err != nil {
		t.Fatal(err)
	}
	f.stored()
	f.get("/")
	expect.Equal(t, "calls", p.calls.Load(), 2)
	f.stored()
	f.get("/")
	expect.Equal(t, "calls for a hit", p.calls.Load(), 2)
}
