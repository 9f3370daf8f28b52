package codec

import (
	"bytes"
	"errors"
)

// deepest is how many arrays and maps may be in each other, as in encoding/json.
const deepest = 10_000

var (
	errClaims = errors.New("codec: msgpack: it claims to have more than there is")
	errDeep   = errors.New("codec: msgpack: arrays and maps are nested too deeply")
	errInExt  = errors.New("codec: msgpack: an extension is not a map")
)

// bounded checks what the decoder trusts: it makes room for as many members as an array claims to have, and calls itself for those in
// it. Neither running out of memory nor out of stack can be recovered from. The claims of all open arrays and maps together must fit the
// bytes that are left. After the first value there may be more, because a CustomEncoder may write several.
//
// maps are where extensions begin whose bytes look like a map: the decoder must not take them for one.
func bounded(data []byte) (maps []int, err error) {
	var few [32]int
	open, owed := few[:0], 0 // what open arrays and maps still have to come, each and together
	for at := 0; at < len(data); {
		for len(open) > 0 && open[len(open)-1] == 0 {
			open = open[:len(open)-1]
		}
		if len(open) > 0 {
			open[len(open)-1]--
			owed--
		}
		members, size, ext := measure(data[at:])
		if at += size; size < 0 || at > len(data) {
			return nil, errClaims
		}
		if ext > 0 && layouts[data[at-ext]].kind == inMap {
			maps = append(maps, at-ext)
		}
		if owed += members; owed > len(data)-at {
			return nil, errClaims
		}
		if members > 0 {
			if len(open) == deepest {
				return nil, errDeep
			}
			open = append(open, members)
		}
	}
	return maps, nil
}

// layout is how a value with a code begins, after the MessagePack specification.
type layout struct {
	size  int // with the code, the length and the type of an extension
	width int // of its length; 0: that is n
	n     int
	kind  kind
}

// kind is what a length counts.
type kind int

const (
	inBytes kind = iota
	inExt        // the bytes of an extension
	inArray
	inMap
)

var layouts = func() (all [256]layout) {
	for code := range all {
		all[code] = layout{size: 1} // a small number, nil, a boolean, or no code
	}
	for n := range 16 {
		all[0x80+n] = layout{1, 0, n, inMap}
		all[0x90+n] = layout{1, 0, n, inArray}
	}
	for n := range 32 {
		all[0xa0+n] = layout{1, 0, n, inBytes}
	}
	for i := range 3 { // each twice as wide
		width := 1 << i
		all[0xc4+i] = layout{1 + width, width, 0, inBytes} // bin
		all[0xc7+i] = layout{2 + width, width, 0, inExt}
		all[0xd9+i] = layout{1 + width, width, 0, inBytes} // str
	}
	for i := range 2 {
		width := 2 << i
		all[0xca+i] = layout{size: 1 + 2*width} // float
		all[0xdc+i] = layout{1 + width, width, 0, inArray}
		all[0xde+i] = layout{1 + width, width, 0, inMap}
	}
	for i := range 4 {
		all[0xcc+i], all[0xd0+i] = layout{size: 1 + 1<<i}, layout{size: 1 + 1<<i} // uint, int
	}
	for i := range 5 {
		all[0xd4+i] = layout{2, 0, 1 << i, inExt}
	}
	return all
}()

// measure returns how many values follow as members, the size of the rest, and how much of that an extension has at the end. A size
// below 0: its length is not there.
func measure(data []byte) (members, size, ext int) {
	l := &layouts[data[0]]
	n := l.n
	if l.width > 0 {
		if len(data) <= l.width {
			return 0, -1, 0
		}
		for _, b := range data[1 : 1+l.width] {
			n = n<<8 | int(b)
		}
	}
	switch l.kind {
	case inArray:
		return n, l.size, 0
	case inMap:
		return 2 * n, l.size, 0
	case inExt:
		return 0, l.size + n, n
	}
	return 0, l.size + n, 0
}

// reader reads what was found to be bounded. When the decoder wants a map and finds an extension, it takes the extension's bytes for a
// map: then it would see arrays and maps that nobody has looked at.
type reader struct {
	*bytes.Reader

	maps []int // where that would begin
}

func (r *reader) ReadByte() (byte, error) {
	at := int(r.Size()) - r.Len()
	for len(r.maps) > 0 && r.maps[0] < at {
		r.maps = r.maps[1:]
	}
	if len(r.maps) > 0 && r.maps[0] == at {
		return 0, errInExt
	}
	return r.Reader.ReadByte()
}
