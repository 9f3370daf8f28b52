package middleware

import (
	"bytes"
	"hash/maphash"
	"testing"

	"github.com/cacheguard/go/middleware/internal/record"
)

func TestTheSameMemoryIsDecodedOnce(t *testing.T) {
	t.Parallel()
	d := decodings{seed: maphash.MakeSeed()}
	raw := (&record.Record{Kind: record.Stored, ID: "a", Status: 200, Body: []byte("page")}).Encode()
	first, err := d.of("k", raw)
	if err != nil || string(first.Body) != "page" {
		t.Fatalf("%+v, %v", first, err)
	}
	if again, err := d.of("k", raw); again != first || err != nil {
		t.Errorf("decoded again: %v", err)
	}
	if other, err := d.of("k", bytes.Clone(raw)); other == first || err != nil {
		t.Errorf("other memory has the same record, %v", err)
	}
	if short, err := d.of("k", raw[:len(raw)-1]); short == first || err != nil {
		t.Errorf("a part of the memory has the same record, %v", err)
	}
	if _, err := d.of("k", nil); err == nil {
		t.Error("nothing is a record")
	}
}
