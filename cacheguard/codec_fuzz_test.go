package cacheguard

import (
	"testing"
	"time"
)

func FuzzTheDefaultCodecReadsAnything(f *testing.F) {
	f.Add([]byte(`{"Name":"tea","At":"2026-11-22T00:00:00Z","Any":[[[{}]]],"Next":{"Name":"cup"}}`))
	type thing struct {
		Name string
		At   time.Time
		Any  any
		Next *thing
	}
	for _, found := range []string{
		"\xb1", "\t0", "A", "\a", "1000", "0", "\tA", "\b", "1A", "f", "1.0A", "\"\"0",
	} {
		f.Add([]byte(found))
	}
	f.Fuzz(func(_ *testing.T, data []byte) {
		for _, into := range []any{new(any), new(thing), new([]thing), new(map[string]thing), new([]byte)} {
			_ = jsonCodec{}.Unmarshal(data, into) // must neither panic nor take the process down
		}
	})
}
