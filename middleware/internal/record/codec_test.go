package record

import (
	"encoding/binary"
	"testing"
)

func TestAnEntryCannotBreakOutOfItsField(t *testing.T) {
	t.Parallel()
	for name, rec := range map[string]Record{
		"a line break in a value":   {Kind: Stored, Status: 200, Header: []Pair{{"X-A", "1\r\nX-Evil: 1"}}},
		"a line feed in a value":    {Kind: Stored, Status: 200, Header: []Pair{{"X-A", "1\nX-Evil: 1"}}},
		"a line break in a name":    {Kind: Stored, Status: 200, Header: []Pair{{"X-A\r\nX-Evil", "1"}}},
		"a colon in a name":         {Kind: Stored, Status: 200, Header: []Pair{{"X-A:", "1"}}},
		"a line break in a trailer": {Kind: Stored, Status: 200, Trailer: []Pair{{"X-A", "1\r\nX-Evil: 1"}}},
		"no status":                 {Kind: Stored, Status: 0},
		"an informational status":   {Kind: Stored, Status: 101},
		"no kind":                   {Status: 200},
		"a sliced page of nothing":  {Kind: Sliced, Status: 200, Parts: "a"},
		"slices without a name":     {Kind: Sliced, Status: 200, Length: 1},
		"a sliced part":             {Kind: Sliced, Status: 206, Length: 1, Parts: "a"},
	} {
		if _, err := Decode(rec.Encode()); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

// Somebody who writes into Redis must not be able to make the instances reserve much more memory than was written.
func TestAHostileRecordClaimsNoMoreMemoryThanItHas(t *testing.T) {
	const size = 1 << 20
	rec := Record{Kind: PassThrough, ID: "a"}
	whole := rec.Encode()
	_, n := binary.Uvarint(whole[len(version):])
	text := whole[len(version)+n:]
	text = text[:len(text)-4] // without the numbers of its pairs
	text = binary.AppendVarint(text, size/2)
	text = append(text, make([]byte, size)...)
	hostile := append(binary.AppendUvarint([]byte(version), uint64(len(text))), text...)
	got := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			_, _ = Decode(hostile)
		}
	})
	if limit := int64(2 * len(hostile)); got.AllocedBytesPerOp() > limit {
		t.Errorf("%d bytes were reserved for %d", got.AllocedBytesPerOp(), len(hostile))
	}
}

func FuzzDecodeRecord(f *testing.F) {
	rec := Record{Kind: Stored, Status: 200, Header: []Pair{{"X-A", "1"}}, Vary: []Pair{{"a", "b"}}, Body: []byte("body")}
	f.Add(rec.Encode())
	f.Add((&Record{Kind: Sliced, Status: 200, Length: 1 << 40, Parts: "a"}).Encode())
	f.Add([]byte(version))
	f.Fuzz(func(t *testing.T, b []byte) {
		rec, err := Decode(b)
		if err != nil {
			return
		}
		again, err := Decode(rec.Encode())
		if err != nil {
			t.Fatal(err)
		}
		if string(again.Encode()) != string(rec.Encode()) {
			t.Error("a record changes by being encoded and decoded")
		}
	})
}
