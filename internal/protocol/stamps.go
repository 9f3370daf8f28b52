package protocol

import (
	"encoding/binary"
	"iter"
)

// Stamps are the versions under which an entry was made, as the entry has them: for each, the name and the version, both with
// their length before them. The entry is valid only while each is still the current version of its name.
type Stamps []byte

// MaxStamps is how many bytes of stamps an entry can have.
const MaxStamps = 1<<16 - 1

// Append adds a stamp.
func (s Stamps) Append(name, version string) Stamps {
	s = binary.AppendUvarint(s, uint64(len(name)))
	s = append(s, name...)
	s = binary.AppendUvarint(s, uint64(len(version)))
	return append(s, version...)
}

// Next returns the first stamp, and those behind it. Without any, the name is empty.
func (s Stamps) Next() (name, version []byte, rest Stamps) {
	name, rest = s.field()
	version, rest = rest.field()
	return name, version, rest
}

// field returns a field of a stamp, and what is behind it; nil for what is none.
func (s Stamps) field() ([]byte, Stamps) {
	n, begins := binary.Uvarint(s)
	if begins <= 0 || n > uint64(len(s)-begins) {
		return nil, nil
	}
	ends := begins + int(n)
	return s[begins:ends], s[ends:]
}

// All are the names and their versions.
func (s Stamps) All() iter.Seq2[[]byte, []byte] {
	return func(yield func(name, version []byte) bool) {
		for rest := s; len(rest) > 0; {
			var name, version []byte
			if name, version, rest = rest.Next(); !yield(name, version) {
				return
			}
		}
	}
}

// valid reports whether the stamps can be read to their end.
func (s Stamps) valid() bool {
	for name, version := range s.All() {
		if len(name) == 0 || len(version) == 0 {
			return false
		}
	}
	return true
}
