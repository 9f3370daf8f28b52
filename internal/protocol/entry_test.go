package protocol

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
)

// stored is the entry as the fill script would store it.
func stored(k Kind, fresh, took time.Duration, payload []byte) []byte {
	head, tail := EncodeEntry(Entry{Kind: k, Fresh: fresh, Took: took, Payload: payload}, rand.Text())
	return append([]byte(head+"0190a1b2c3d"), tail...)
}

func TestAnEntryDecodesToWhatWasEncoded(t *testing.T) {
	t.Parallel()
	for _, payload := range [][]byte{nil, {}, []byte("x"), bytes.Repeat([]byte("\x00\xff"), 5000)} {
		e, err := DecodeEntry(stored(Raw, time.Minute, 20*time.Millisecond, payload))
		if err != nil {
			t.Fatal(err)
		}
		expect.Equal(t, "kind", e.Kind, Raw)
		expect.Equal(t, "fresh", e.Fresh, time.Minute)
		expect.Equal(t, "took", e.Took, 20*time.Millisecond)
		expect.Equal(t, "written", e.Written.UnixMilli(), 0x190a1b2c3d)
		expect.Equal(t, "payload", string(e.Payload), string(payload))
	}
}

func TestAnEntryHasTheStampsItWasMadeUnder(t *testing.T) {
	t.Parallel()
	var stamps Stamps
	stamps = stamps.Append("r", "1").Append("t:a b", strings.Repeat("v", 200))
	head, tail := EncodeEntry(Entry{Kind: Raw, Packed: 'z', Stamps: stamps, Payload: []byte("p")}, rand.Text())
	e, err := DecodeEntry(append([]byte(head+"0190a1b2c3d"), tail...))
	if err != nil {
		t.Fatal(err)
	}
	expect.Equal(t, "payload", string(e.Payload), "p")
	expect.Equal(t, "packed", e.Packed, 'z')
	name, version, rest := e.Stamps.Next()
	expect.Equal(t, "first", string(name)+"="+string(version), "r=1")
	name, version, rest = rest.Next()
	expect.Equal(t, "second", string(name)+"="+string(version), "t:a b="+strings.Repeat("v", 200))
	name, _, rest = rest.Next()
	expect.Equal(t, "bytes behind the last", len(name)+len(rest), 0)
}

func TestDurationsTooLongForTheHeaderAreCut(t *testing.T) {
	t.Parallel()
	e, err := DecodeEntry(stored(Raw, 1<<62, 1<<62, nil))
	if err != nil || e.Fresh < 30*365*24*time.Hour || e.Took < 24*time.Hour {
		t.Errorf("%v %v, %v", e.Fresh, e.Took, err)
	}
}

func TestWhatIsNoEntryIsRefused(t *testing.T) {
	t.Parallel()
	good := string(stored(Coded, time.Minute, time.Second, []byte("payload")))
	for name, c := range map[string]struct {
		raw  string
		want error
	}{
		"empty":              {"", errForeign},
		"somebody's value":   {`{"id": 7}`, errForeign},
		"a longer one":       {strings.Repeat("x", 200), errForeign},
		"another version":    {"cg1" + good[3:], errForeign},
		"another kind":       {"cg2x" + good[4:], errForeign},
		"cut in the header":  {good[:20], errTruncated},
		"cut in the payload": {good[:len(good)-1], errDamaged},
		"a flipped bit":      {good[:len(good)-1] + "D", errDamaged},
		"a letter in a time": {good[:6] + "z" + good[7:], errDamaged},
		"no stamps there":    {strings.Replace(good, "0000payload", "0008payload", 1), errDamaged},
		"bad stamps":         {strings.Replace(good, "0000payload", "0003payload", 1), errDamaged},
		"a sign in a time":   {good[:writtenAt] + "-" + good[writtenAt+1:], errDamaged},
	} {
		if _, err := DecodeEntry([]byte(c.raw)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// jsonCodec is the default Codec of a Guard.
type jsonCodec struct{}

func (jsonCodec) Marshal(v any) ([]byte, error)      { return json.Marshal(v) }
func (jsonCodec) Unmarshal(data []byte, v any) error { return json.Unmarshal(data, v) }

func FuzzDecodeEntry(f *testing.F) {
	f.Add(stored(Raw, time.Minute, time.Second, []byte("payload")))
	f.Add(stored(Absent, 0, 0, nil))
	f.Add([]byte("cg2"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		e, err := DecodeEntry(raw)
		if err != nil {
			return
		}
		if e.Fresh < 0 || e.Took < 0 || e.Written.UnixMilli() < 0 || !bytes.HasSuffix(raw, e.Payload) {
			t.Errorf("%+v", e)
		}
		for _, sh := range []Shape{ShapeOf[string]{}, ShapeOf[[]byte]{}, ShapeOf[map[string]int]{}} {
			_, _ = sh.Decode(jsonCodec{}, e) // must not panic
		}
	})
}
