package cas

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
)

// Version names one write of one value. It is opaque and printable, fit for an ETag. The empty Version stands for the
// absence of a value.
type Version string

// A value in Redis is its version, a byte that says what follows, and that. The version begins with a mark of this package
// and of its format.
const (
	mark       = "cas1"
	versionLen = len(mark) + 26 // as rand.Text has
	raw        = 'r'            // the bytes of a []byte or string
	coded      = 'c'            // another type, through the Codec
)

func newVersion() Version { return Version(mark + rand.Text()) }

var errForeign = errors.New("it is not a value of this package")

// encode returns what is stored.
func encode[V any](c Codec, version Version, value V) ([]byte, error) {
	var payload []byte
	kind := byte(raw)
	switch v := any(&value).(type) { // of V: an interface may have anything in it, of which decode does not know
	case *[]byte:
		payload = *v
	case *string:
		payload = []byte(*v)
	default:
		var err error
		if payload, err = c.Marshal(value); err != nil {
			return nil, err
		}
		kind = coded
	}
	stored := make([]byte, 0, versionLen+1+len(payload))
	stored = append(stored, version...)
	return append(append(stored, kind), payload...), nil
}

// decode is the inverse. A Codec's panic is an error: what is stored may have been written by somebody else.
func decode[V any](c Codec, stored string) (value V, version Version, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("codec panicked: %v", p)
		}
	}()
	if len(stored) <= versionLen || !strings.HasPrefix(stored, mark) {
		return value, "", errForeign
	}
	version, kind, payload := Version(stored[:versionLen]), stored[versionLen], stored[versionLen+1:]
	want := byte(raw)
	switch p := any(&value).(type) {
	case *[]byte:
		*p = []byte(payload)
	case *string:
		*p = payload
	default:
		want = coded
	}
	switch {
	case kind != want:
		var none V
		return none, version, fmt.Errorf("it was stored as another type than %T", value)
	case kind == coded:
		err = c.Unmarshal([]byte(payload), &value)
	}
	return value, version, err
}
