package protocol

import (
	"encoding/binary"
	"iter"
)

// EpochLen is how many bytes an epoch has.
const EpochLen = 8

// Epoch is a random text that stands for a name, until the name is invalidated. The zero one is none.
type Epoch [EpochLen]byte

// IsZero reports whether it is none.
func (e Epoch) IsZero() bool { return e == Epoch{} }

// EpochOf is what was read where an epoch may be; zero: there is none.
func EpochOf(raw []byte) (e Epoch) {
	if len(raw) == EpochLen || Ends(raw) {
		e = Epoch(raw[:EpochLen])
	}
	return e
}

// Ends reports whether the epoch that was read ends with an intent, maybe before its time.
func Ends(raw []byte) bool { return len(raw) == EpochLen+1 }

// Stamp has the epochs that an entry was made under: of the Prefix, of its kind, and of its tags. The entry is valid
// only while each is still the current one.
type Stamp struct {
	Prefix Epoch
	Kind   Epoch // zero: the entry is of no kind
	Tags   Tags
}

// Tags are tags and their epochs, as an entry has them behind how many there are.
type Tags []byte

// Append adds a tag.
func (t Tags) Append(tag string, e Epoch) Tags {
	t = binary.AppendUvarint(t, uint64(len(tag)))
	t = append(t, tag...)
	return append(t, e[:]...)
}

// All are the tags and their epochs.
func (t Tags) All() iter.Seq2[[]byte, Epoch] {
	return func(yield func(tag []byte, e Epoch) bool) {
		for rest := []byte(t); len(rest) > 0; {
			var tag []byte
			var e Epoch
			if tag, e, rest = takeTag(rest); tag == nil || !yield(tag, e) {
				return
			}
		}
	}
}

// Names are the tags alone.
func (t Tags) Names() (names []string) {
	for tag := range t.All() {
		names = append(names, string(tag))
	}
	return names
}

func (t Tags) appendTo(entry []byte) []byte {
	n := 0
	for range t.All() {
		n++
	}
	return append(binary.AppendUvarint(entry, uint64(n)), t...)
}

// takeTags returns the tags at the beginning of an entry's body, and the rest.
func takeTags(body []byte) (tags Tags, rest []byte, ok bool) {
	n, body := takeVarint(body)
	if body == nil {
		return nil, nil, false
	}
	rest = body
	for range n {
		var tag []byte
		if tag, _, rest = takeTag(rest); tag == nil {
			return nil, nil, false
		}
	}
	end := len(body) - len(rest)
	return Tags(body[:end:end]), rest, true
}

// takeTag returns the first tag, and what is behind it; a nil tag: there is none.
func takeTag(from []byte) (tag []byte, e Epoch, rest []byte) {
	n, from := takeVarint(from)
	if n == 0 || n > uint64(len(from)) || len(from)-int(n) < EpochLen {
		return nil, e, nil
	}
	e, rest = takeEpoch(from[n:])
	return from[:n:n], e, rest
}

// takeEpoch returns the epoch that bytes begin with, and what is behind it; nil: there are too few.
func takeEpoch(from []byte) (Epoch, []byte) {
	if len(from) < EpochLen {
		return Epoch{}, nil
	}
	return Epoch(from[:EpochLen]), from[EpochLen:]
}

// takeVarint does so with a number.
func takeVarint(from []byte) (uint64, []byte) {
	n, size := binary.Uvarint(from)
	if size <= 0 {
		return 0, nil
	}
	return n, from[size:]
}
