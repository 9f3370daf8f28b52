package protocol

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
)

// key is the user's key that entries are stored for.
const key = "user:1"

// stored is the entry as the fill script would store it.
func stored(e Entry) []byte {
	head, tail := EncodeEntry(key, e, rand.Text())
	return append([]byte(head+"\x01\x90\xa1\xb2\xc3\xd0\x77"), tail...)
}

func TestAnEntryDecodesToWhatWasEncoded(t *testing.T) {
	t.Parallel()
	for _, payload := range [][]byte{nil, {}, []byte("x"), bytes.Repeat([]byte("\x00\xff"), 5000)} {
		e, err := DecodeEntry(key, stored(Entry{Kind: Raw, Fresh: time.Minute, Took: 20 * time.Millisecond, Payload: payload}))
		expect.Must(t, err)
		expect.Equal(t, "kind", e.Kind, Raw)
		expect.Equal(t, "fresh", e.Fresh, time.Minute)
		expect.Equal(t, "took", e.Took, 20*time.Millisecond)
		expect.Equal(t, "written", e.Written.UnixMilli(), 0x190a1b2c3d0)
		expect.Equal(t, "payload", string(e.Payload), string(payload))
	}
}

func TestAnEntryHasTheStampItWasMadeUnder(t *testing.T) {
	t.Parallel()
	one, two, long := Epoch{1}, Epoch{2}, strings.Repeat("t", 300)
	for name, in := range map[string]Entry{
		"of no kind": {Stamp: Stamp{Prefix: one}},
		"of a kind":  {Stamp: Stamp{Prefix: one, Kind: two}, Packed: 'z'},
		"tags":       {Stamp: Stamp{Prefix: one, Tags: Tags(nil).Append("a b", two).Append(long, one)}, Version: 1_000_000},
		"everything": {Stamp: Stamp{Prefix: one, Kind: two, Tags: Tags(nil).Append("t", one)}, Version: 1},
	} {
		in.Kind, in.Payload = Raw, []byte("p")
		e, err := DecodeEntry(key, stored(in))
		if err != nil {
			t.Fatal(name, err)
		}
		expect.Equal(t, name, fmt.Sprint(e.Stamp, e.Version, string(e.Payload)), fmt.Sprint(in.Stamp, in.Version, "p"))
		expect.Equal(t, name+": packed", e.Packed, cmp.Or(in.Packed, Unpacked))
	}
}

func TestAnEntryTakesFewBytesMoreThanItsPayload(t *testing.T) {
	t.Parallel()
	tags := func(n int) (all Tags) {
		for i := range n {
			all = all.Append(fmt.Sprint("tag:", 100+i), Epoch{1})
		}
		return all
	}
	for _, c := range []struct {
		stamp Stamp
		more  int
	}{
		{Stamp{Prefix: Epoch{1}}, 38},
		{Stamp{Prefix: Epoch{1}, Tags: tags(1)}, 54},
		{Stamp{Prefix: Epoch{1}, Tags: tags(4)}, 102},
		{Stamp{Prefix: Epoch{1}, Kind: Epoch{2}}, 46},
		{Stamp{Prefix: Epoch{1}, Kind: Epoch{2}, Tags: tags(1)}, 62},
		{Stamp{Prefix: Epoch{1}, Kind: Epoch{2}, Tags: tags(4)}, 110},
	} {
		expect.Equal(t, fmt.Sprint(c.stamp), len(stored(Entry{Kind: Raw, Stamp: c.stamp, Payload: make([]byte, 100)}))-100, c.more)
	}
}

// Whatever bit is flipped, nobody takes the entry for another one.
func TestAFlippedBitIsFound(t *testing.T) {
	t.Parallel()
	good := stored(Entry{Kind: Coded, Fresh: time.Minute, Stamp: Stamp{Prefix: Epoch{1}, Kind: Epoch{2}, Tags: Tags(nil).Append("t", Epoch{3})}, Payload: []byte("payload")})
	for bit := range 8 * len(good) {
		bad := bytes.Clone(good)
		bad[bit/8] ^= 1 << (bit % 8)
		if e, err := DecodeEntry(key, bad); err == nil {
			t.Errorf("bit %d: %+v", bit, e)
		}
	}
}

// A reply that belongs to another request, and an entry that somebody copied, are nobody's value.
func TestAnotherKeysEntryIsDamage(t *testing.T) {
	t.Parallel()
	entry := stored(Entry{Kind: Raw, Stamp: Stamp{Prefix: Epoch{1}}, Payload: []byte("secret")})
	for _, other := range []string{"", "user:2", "user:", "user:11", "ruse:1"} {
		expect.ErrorIs(t, expect.Err(DecodeEntry(other, entry)), errDamaged)
	}
}

func TestDurationsTooLongForTheHeaderAreCut(t *testing.T) {
	t.Parallel()
	e, err := DecodeEntry(key, stored(Entry{Kind: Raw, Fresh: 1 << 62, Took: 1 << 62}))
	if err != nil || e.Fresh < 30*365*24*time.Hour || e.Took < 4*time.Hour {
		t.Errorf("%v %v, %v", e.Fresh, e.Took, err)
	}
}

func TestWhatIsNoEntryIsRefused(t *testing.T) {
	t.Parallel()
	good := string(stored(Entry{Kind: Coded, Fresh: time.Minute, Stamp: Stamp{Tags: Tags(nil).Append("tag", Epoch{1})}, Payload: []byte("payload")}))
	for name, c := range map[string]struct {
		raw  string
		want error
	}{
		"empty":              {"", errForeign},
		"somebody's value":   {`{"id": 7}`, errForeign},
		"a longer one":       {strings.Repeat("x", 200), errForeign},
		"of an older format": {"cg2" + good[3:], errForeign},
		"another kind":       {good[:1] + "\xff" + good[2:], errDamaged},
		"cut in the header":  {good[:20], errTruncated},
		"cut in the payload": {good[:len(good)-1], errDamaged},
		"other bytes":        {good[:len(good)-1] + "D", errDamaged},
		"too many tags":      {summed(good, HeaderLen+EpochLen, 2), errDamaged},
		"a tag that is long": {summed(good, HeaderLen+EpochLen+1, 100), errDamaged},
		"a tag that is none": {summed(good, HeaderLen+EpochLen+1, 0), errDamaged},
	} {
		if _, err := DecodeEntry(key, []byte(c.raw)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// summed is an entry with another byte, and a checksum that fits it.
func summed(entry string, at int, b byte) string {
	raw := []byte(entry)
	raw[at] = b
	binary.BigEndian.PutUint32(raw[sumAt:], checksum(key, raw))
	return string(raw)
}

// jsonCodec is the default Codec of a Guard.
type jsonCodec struct{}

func (jsonCodec) Marshal(v any) ([]byte, error)      { return json.Marshal(v) }
func (jsonCodec) Unmarshal(data []byte, v any) error { return json.Unmarshal(data, v) }

func FuzzDecodeEntry(f *testing.F) {
	f.Add(stored(Entry{Kind: Raw, Fresh: time.Minute, Took: time.Second, Payload: []byte("payload")}))
	f.Add(stored(Entry{Kind: Absent}))
	f.Add([]byte{magic})
	f.Fuzz(func(t *testing.T, raw []byte) {
		e, err := DecodeEntry(key, raw)
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

// hashtag is the part of a key that decides its slot, as the Redis Cluster specification has it: what stands between
// the first { and the first } after it, unless that is empty.
func hashtag(key string) string {
	_, rest, ok := strings.Cut(key, "{")
	if !ok {
		return key
	}
	tag, _, ok := strings.Cut(rest, "}")
	if !ok || tag == "" {
		return key
	}
	return tag
}

func FuzzValueAndLeaseShareASlot(f *testing.F) {
	for _, key := range []string{"k", "{", "}", "{}", "}{", `\`, `\}`, "a}b", "{a}", "a{b}c", "k}:lease", "\x00"} {
		f.Add("shop", key, "other")
		f.Add("", key, "{"+key)
		f.Add("a:b", key, `\`+key)
	}
	f.Fuzz(func(t *testing.T, prefix, key, other string) {
		if strings.ContainsAny(prefix, "{}") || key == "" || other == "" {
			return
		}
		space := Keyspace{Prefix: prefix}
		value, lease := space.ValueKey(key), LeaseKey(space.ValueKey(key))
		if hashtag(value) != hashtag(lease) || hashtag(value) == value {
			t.Errorf("%q is in slot %q, %q in %q", value, hashtag(value), lease, hashtag(lease))
		}
		if key != other && (value == space.ValueKey(other) || lease == space.ValueKey(other)) {
			t.Errorf("%q and %q collide", key, other)
		}
	})
}

func FuzzParsePush(f *testing.F) {
	for _, seed := range [][2]string{{"", ""}, {"v", ""}, {"g1", "1"}, {"vgenentry", "gen"}, {"fgen\x00", "gen"}, {"gwriting", "writing"}, {"vge", "gen"}, {"\xff\x00", "\x00"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, body, generation string) {
		what, rest, ok := ParsePush(body, generation)
		if ok && string([]byte{byte(what)})+generation+rest != body {
			t.Errorf("%q for %q is %q and %q", body, generation, what, rest)
		}
		if _, rest, ok := ParsePush("v"+generation+body, generation); !ok || rest != body {
			t.Errorf("a message of %q with %q is %q, %t", generation, body, rest, ok)
		}
	})
}
