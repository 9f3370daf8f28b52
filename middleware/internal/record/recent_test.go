package record

import (
	"bytes"
	"crypto/rand"
	"testing"
)

func TestTheSameMemoryIsDecodedOnce(t *testing.T) {
	t.Parallel()
	d := NewRecent()
	raw := (&Record{Kind: Stored, ID: "a", Status: 200, Body: []byte("page")}).Encode()
	first, err := d.Decode("k", raw)
	if err != nil || string(first.Body) != "page" {
		t.Fatalf("%+v, %v", first, err)
	}
	if again, err := d.Decode("k", raw); again != first || err != nil {
		t.Errorf("decoded again: %v", err)
	}
	if other, err := d.Decode("k", bytes.Clone(raw)); other == first || err != nil {
		t.Errorf("other memory has the same record, %v", err)
	}
	if short, err := d.Decode("k", raw[:len(raw)-1]); short == first || err != nil {
		t.Errorf("a part of the memory has the same record, %v", err)
	}
	d.Keep("k", first)
	for range 100 { // more than are remembered otherwise
		if _, err := d.Decode(rand.Text(), raw); err != nil {
			t.Fatal(err)
		}
	}
	if again, err := d.Decode("k", raw); again != first || err != nil {
		t.Errorf("what the local tier keeps is decoded again: %v", err)
	}
	large := (&Record{Kind: Stored, ID: "a", Status: 200, Body: make([]byte, small)}).Encode()
	rec, err := d.Decode("large", large)
	if err != nil {
		t.Fatal(err)
	}
	d.Keep("large", rec)
	for i := range d.kept {
		if d.kept[i].Load() == rec {
			t.Error("so large a record is kept for long")
		}
	}
	if _, err := d.Decode("k", nil); err == nil {
		t.Error("nothing is a record")
	}
}
