package cacheguard

import (
	"bytes"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"
)

// stored is the entry as the fill script would store it.
func stored(k kind, fresh, took time.Duration, payload []byte) []byte {
	head, tail := encodeEntry(k, fresh, took, rand.Text(), payload)
	return append([]byte(head+"0190a1b2c3d"), tail...)
}

func TestAnEntryDecodesToWhatWasEncoded(t *testing.T) {
	t.Parallel()
	for _, payload := range [][]byte{nil, {}, []byte("x"), bytes.Repeat([]byte("\x00\xff"), 5000)} {
		e, err := decodeEntry(stored(kindRaw, time.Minute, 20*time.Millisecond, payload))
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "kind", e.kind, kindRaw)
		equal(t, "fresh", e.fresh, time.Minute)
		equal(t, "took", e.took, 20*time.Millisecond)
		equal(t, "written", e.written.UnixMilli(), 0x190a1b2c3d)
		equal(t, "payload", string(e.payload), string(payload))
	}
}

func TestDurationsTooLongForTheHeaderAreCut(t *testing.T) {
	t.Parallel()
	e, err := decodeEntry(stored(kindRaw, 1<<62, 1<<62, nil))
	if err != nil || e.fresh < 30*365*24*time.Hour || e.took < 24*time.Hour {
		t.Errorf("%v %v, %v", e.fresh, e.took, err)
	}
}

func TestWhatIsNoEntryIsRefused(t *testing.T) {
	t.Parallel()
	good := string(stored(kindCoded, time.Minute, time.Second, []byte("payload")))
	for name, c := range map[string]struct {
		raw  string
		want error
	}{
		"empty":              {"", errForeign},
		"somebody's value":   {`{"id": 7}`, errForeign},
		"a longer one":       {strings.Repeat("x", 200), errForeign},
		"another version":    {"cg2" + good[3:], errForeign},
		"another kind":       {"cg1x" + good[4:], errForeign},
		"cut in the header":  {good[:20], errTruncated},
		"cut in the payload": {good[:len(good)-1], errDamaged},
		"a flipped bit":      {good[:len(good)-1] + "D", errDamaged},
		"a letter in a time": {good[:5] + "z" + good[6:], errDamaged},
		"a sign in a time":   {good[:writtenAt] + "-" + good[writtenAt+1:], errDamaged},
	} {
		if _, err := decodeEntry([]byte(c.raw)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func FuzzDecodeEntry(f *testing.F) {
	f.Add(stored(kindRaw, time.Minute, time.Second, []byte("payload")))
	f.Add(stored(kindAbsent, 0, 0, nil))
	f.Add([]byte("cg1"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		e, err := decodeEntry(raw)
		if err != nil {
			return
		}
		if e.fresh < 0 || e.took < 0 || e.written.UnixMilli() < 0 || !bytes.HasSuffix(raw, e.payload) {
			t.Errorf("%+v", e)
		}
		for _, sh := range []shape{shapeOf[string]{}, shapeOf[[]byte]{}, shapeOf[map[string]int]{}} {
			_, _ = sh.decode(jsonCodec{}, e) // must not panic
		}
	})
}
