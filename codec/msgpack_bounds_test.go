package codec

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/cacheguard/go/cacheguard"
)

// tree can be as deep as its encoding says.
type tree struct {
	Children []tree
	Any      any
	Map      map[string]any
	Untyped  map[any]any
	Next     *tree
	At       time.Time
	Bytes    []byte
}

// everything is decoded into by the tests of hostile bytes.
func everything() []any {
	return []any{
		new(any), new([]any), new(map[string]any), new(map[any]any), new(map[string]string), new(map[int]tree), new([]string), new([]byte),
		new(string), new(tree), new([]tree), new([][]byte), new(time.Time), new(int), new(product), new([]int64), new(msgpack.RawMessage),
	}
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// deep is that many arrays, each in the one before.
func deep(n int) []byte { return append(bytes.Repeat([]byte{0x91}, n), 0xc0) }

// hostile is by what it does.
func hostile(t testing.TB) map[string][]byte {
	long := strings.Repeat("c0", 1000)
	chain := ""
	for range 200 { // each fits what is left, and all together do not
		chain += "dd 000003e8"
	}
	return map[string][]byte{
		"an array that claims 4 billion members":        unhex(t, "dd ffffffff c0"),
		"a map that does":                               unhex(t, "df ffffffff a0 c0"),
		"a short array":                                 unhex(t, "dc ffff c0"),
		"a short map":                                   unhex(t, "de 7fff a0 c0"),
		"a fixed array":                                 unhex(t, "9f c0"),
		"bytes that are not there":                      unhex(t, "c6 ffffffff 00"),
		"a string that is not there":                    unhex(t, "db ffffffff 00"),
		"an extension that is not there":                unhex(t, "c9 ffffffff ff 00"),
		"a time that is not there":                      unhex(t, "d7 ff 00"),
		"a length that is not there":                    unhex(t, "dd ff"),
		"a claim in a field that is skipped":            unhex(t, "82 a3"+hex.EncodeToString([]byte("odd"))+" dd ffffffff c0"),
		"a claim in a field":                            unhex(t, "81 a3"+hex.EncodeToString([]byte("Any"))+" dd ffffffff c0"),
		"claims that fit each by itself":                append(unhex(t, chain), unhex(t, long)...),
		"arrays in each other":                          deep(20_000_000),
		"arrays in each other, with a member before":    append(bytes.Repeat([]byte{0x92, 0xc0}, 5_000_000), bytes.Repeat([]byte{0xc0}, 5_000_001)...),
		"maps in each other":                            append(bytes.Repeat([]byte{0x81, 0xa0}, 10_000_000), 0xc0),
		"an extension that the decoder takes for a map": unhex(t, "c7 05 ff df ffffffff"),
		"one in a map":                                  unhex(t, "81 a3"+hex.EncodeToString([]byte("Map"))+" c7 05 ff df ffffffff"),
		"one of a fixed size":                           unhex(t, "d7 ff df ffffffff 000000"),
	}
}

// Not parallel: others' allocations would count. A mistake here could not be recovered from.
func TestMsgPackMakesNoRoomForWhatIsNotThere(t *testing.T) {
	for name, data := range hostile(t) {
		for _, into := range everything() {
			if took := allocated(func() { _ = MsgPack().Unmarshal(data, into) }); took > uint64(1<<20+len(data)) { // it may be refused or skipped
				t.Errorf("%s, into %T: allocated %d bytes", name, into, took)
			}
		}
		if err := MsgPack().Unmarshal(data, new(map[string]any)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestMsgPackReadsWhatIsAsDeepAsItWrites(t *testing.T) {
	t.Parallel()
	var v any
	for range deepest {
		v = []any{v}
	}
	var got any
	data, err := MsgPack().Marshal(v)
	if err != nil || MsgPack().Unmarshal(data, &got) != nil {
		t.Fatalf("%d bytes, %v", len(data), err)
	}
	if _, err := MsgPack().Marshal([]any{v}); !errors.Is(err, errDeep) {
		t.Errorf("error %v, want %v: what is written could not be read", err, errDeep)
	}
}

// pair encodes itself as two values, as package msgpack suggests.
type pair struct{ A, B string }

func (p pair) EncodeMsgpack(e *msgpack.Encoder) error  { return e.EncodeMulti(p.A, p.B) }
func (p *pair) DecodeMsgpack(d *msgpack.Decoder) error { return d.DecodeMulti(&p.A, &p.B) }

func TestMsgPackReadsAllThatItWrites(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	for _, size := range []int{0, 1, 15, 16, 31, 32, 255, 256, math.MaxUint16, math.MaxUint16 + 1} {
		text, list, table := strings.Repeat("x", size), make([]int64, size), make(map[int]string, size)
		for i := range list {
			list[i] = int64(random.Uint64()) >> random.IntN(64)
			table[i] = "v"
		}
		if got := roundTrip(t, MsgPack(), text); got != text {
			t.Errorf("string of %d: %d", size, len(got))
		}
		if got := roundTrip(t, MsgPack(), []any{[]byte(text)}); !bytes.Equal(got[0].([]byte), []byte(text)) {
			t.Errorf("bytes of %d", size)
		}
		if got := roundTrip(t, MsgPack(), list); len(got) != size || size > 0 && got[size-1] != list[size-1] {
			t.Errorf("array of %d: %d", size, len(got))
		}
		if got := roundTrip(t, MsgPack(), table); len(got) != size {
			t.Errorf("map of %d: %d", size, len(got))
		}
	}
	pairs := map[string][]pair{"x": {{"a", "b"}, {"c", "d"}}, "y": {{"e", "f"}}}
	if got := roundTrip(t, MsgPack(), pairs); got["x"][1] != pairs["x"][1] || got["y"][0] != pairs["y"][0] {
		t.Errorf("%v, want %v", got, pairs)
	}
	for range 1000 { // the bytes of some look like a map
		at := time.Unix(random.Int64N(1<<35), random.Int64N(1e9))
		if got := roundTrip(t, MsgPack(), map[string]any{"at": at, "list": []time.Time{at, at}}); !got["at"].(time.Time).Equal(at) {
			t.Fatalf("%v, want %v", got["at"], at)
		}
	}
}

func FuzzMsgPack(f *testing.F) {
	for _, data := range hostile(f) {
		if len(data) < 1<<12 {
			f.Add(data)
		}
	}
	for _, v := range []any{product{Name: "tea", Tags: []string{"a"}, Seen: time.Unix(1, 2)}, map[string]any{"at": time.Unix(1<<34, 5), "x": 1.5}, []any{nil, true, -1}} {
		data, err := MsgPack().Marshal(v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, found := range []string{
		"0000", "\xa40000", "\x850000000000", "\xd400\xd400", "׀00000000", "\xd5000", "\xd300000000", "", "\xca0000",
		"\x90\x90\x90\x90\x90\x90\x90\x90", "\xcb00000000", "\xd7\xff\xff0000000",
	} {
		f.Add([]byte(found))
	}
	fuzzed(f, MsgPack(), everything)
}

// fuzzed decodes anything. An array's members may be structs of a few hundred bytes each.
func fuzzed(f *testing.F, c cacheguard.Codec, targets func() []any) {
	f.Helper()
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, into := range targets() {
			took := allocated(func() {
				defer func() { _ = recover() }() // the Guard does, too
				_ = c.Unmarshal(data, into)
			})
			if took > uint64(1<<20+2000*len(data)) {
				t.Fatalf("%d bytes, into %T: allocated %d", len(data), into, took)
			}
		}
	})
}
