package cas

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/expect"
)

type point struct{ X, Y int }

func TestValuesComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	s := newStore(t, shared.Client(t), Config{})
	wantValue(t, s, "string", "a\x00b", create(t, s, "string", "a\x00b"))
	wantValue(t, s, "empty", "", create(t, s, "empty", ""))
	wantValue(t, s, "point", point{1, 2}, create(t, s, "point", point{1, 2}))
	create(t, s, "bytes", []byte("bytes"))
	if got, _, err := Get[[]byte](t.Context(), s, "bytes"); string(got) != "bytes" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

func TestAValueOfAnInterfaceTypeComesBackWhateverIsInIt(t *testing.T) {
	t.Parallel()
	s := newStore(t, shared.Client(t), Config{})
	for key, value := range map[string]any{"text": "a", "number": 1.5, "nothing": nil} {
		wantValue(t, s, key, value, create(t, s, key, value))
	}
	create[any](t, s, "bytes", []byte("b"))
	if got, _, err := Get[any](t.Context(), s, "bytes"); got != "Yg==" || err != nil { // as the Codec has it
		t.Errorf("%v, %v", got, err)
	}
}

func TestAValueOfAnotherTypeOrOriginIsAnError(t *testing.T) {
	t.Parallel()
	rdb := shared.Client(t)
	s := newStore(t, rdb, Config{})
	create(t, s, "raw", "text")
	create(t, s, "coded", point{})
	if err := rdb.Set(t.Context(), s.valueKey("foreign"), "somebody else's, and long enough to be one", 0).Err(); err != nil {
		t.Fatal(err)
	}
	for key, get := range map[string]func(key string) error{
		"raw":     func(key string) error { _, _, err := Get[point](t.Context(), s, key); return err },
		"coded":   func(key string) error { _, _, err := Get[string](t.Context(), s, key); return err },
		"foreign": func(key string) error { _, _, err := Get[string](t.Context(), s, key); return err },
	} {
		if err := get(key); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", key, err)
		}
	}
	_, err := Swap(t.Context(), s, "foreign", "", "mine")
	expect.ErrorIs(t, err, ErrConflict)
}

// panicking is a Codec that cannot stand what it reads.
type panicking struct{ jsonCodec }

func (panicking) Unmarshal([]byte, any) error { panic("odd bytes") }

func TestACodecThatPanicsOnWhatIsStoredIsAnError(t *testing.T) {
	t.Parallel()
	stored, err := encode(jsonCodec{}, newVersion(), point{1, 2})
	expect.ErrorIs(t, err)
	if _, _, err := decode[point](panicking{}, string(stored)); err == nil || !strings.Contains(err.Error(), "odd bytes") {
		t.Errorf("error %v, want the panic", err)
	}
}

func FuzzDecode(f *testing.F) {
	version := newVersion()
	seed, _ := encode(jsonCodec{}, version, point{1, 2}) // cannot fail
	f.Add(string(seed))
	f.Add(string(version))
	f.Add("")
	for _, found := range []string{
		"cas1000000000000000000000000000", "cas100000000000000000000000000c{0", "cas100000000000000000000000000cA",
		"cas100000000000000000000000000c{\"\":0\x00", "cas100000000000000000000000000c \x00",
		"cas100000000000000000000000000c00", "cas100000000000000000000000000c0\"0",
		"cas100000000000000000000000000c{\"0000\"0", "cas100000000000000000000000000c{\"0\":1\x00",
		"cas100000000000000000000000000c \"00", "cas100000000000000000000000000c\xff",
	} {
		f.Add(found)
	}
	f.Fuzz(func(t *testing.T, stored string) {
		_, _, _ = decode[point](jsonCodec{}, stored) // must not panic
		b, version, err := decode[[]byte](jsonCodec{}, stored)
		if err != nil {
			return
		}
		again, err := encode(jsonCodec{}, version, b)
		if err != nil || !bytes.Equal(again, []byte(stored)) {
			t.Errorf("%q became %q, %v", stored, again, err)
		}
	})
}

func TestNewNamesEveryFieldThatIsOutOfRange(t *testing.T) {
	t.Parallel()
	var none *redis.Client
	_, err := New(none, Config{Prefix: "a{b", TTL: 60, MaxAttempts: -2, RedisTimeout: -1})
	if err == nil {
		t.Fatal("no error")
	}
	for _, field := range []string{"rdb", "Prefix", "TTL: 60ns", "MaxAttempts", "RedisTimeout"} {
		if !strings.Contains(err.Error(), field) {
			t.Errorf("%s is not named in: %v", field, err)
		}
	}
	if _, err := New(shared.Client(t), Config{TTL: -1, MaxAttempts: -1, RedisTimeout: time.Second}); err != nil {
		t.Error(err)
	}
}
