// Package roundtrip compares what comes back from a Codec with what went in. It serves tests, and the Codec of package
// codec that checks: a Guard itself looks at no value. It knows nothing of what is in values: it says where they differ,
// not how.
package roundtrip

import (
	"bytes"
	"fmt"
	"reflect"

	"github.com/cacheguard/go/internal/cache/protocol"
)

// tries is how often both values are encoded before two encodings that differ are due to the values. The worst is a map of five, which Go
// walks in the same order half of the time: a quarter of the tries say nothing, and all of sixteen once in four thousand million.
const tries = 16

// An Error says that a value does not come back from its Codec as it was.
type Error struct {
	Path    string // of the field, below the type
	Problem string
	Err     error // of the Codec, when it decoded what it had encoded, or encoded it again; nil: the value is another one
}

func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %s: %v", e.Path, e.Problem, e.Err)
	}
	return e.Path + ": " + e.Problem
}

// Unwrap returns the error of the Codec.
func (e *Error) Unwrap() error { return e.Err }

// Check encodes a value, to which it gets the pointer, decodes that, and compares both values, and the bytes that the second one is
// encoded in. The error is an *Error if they differ, or if the Codec cannot read what it wrote; another one is the Codec's,
// which does not encode the value. It includes the Codec's panics.
func Check(c protocol.Codec, value any) (payload []byte, err error) {
	was := reflect.ValueOf(value).Elem()
	path := was.Type().String()
	if payload, err = marshal(c, was); err != nil {
		return nil, err
	}
	back := reflect.New(was.Type())
	if err := unmarshal(c, payload, back); err != nil {
		return nil, &Error{path, "it cannot be decoded", err}
	}
	if path, problem := Difference(value, back.Interface(), c.Marshal); problem != "" {
		return nil, &Error{path, problem, nil}
	}
	if err := compareBytes(c, payload, was, back.Elem()); err != nil {
		err.Path = path
		return nil, err
	}
	return payload, nil
}

// compareBytes encodes what came back. If the value itself has not the same bytes each time, as those of a map without an order or with a nonce,
// they say nothing.
func compareBytes(c protocol.Codec, payload []byte, was, back reflect.Value) *Error {
	for range tries {
		again, err := marshal(c, back)
		if err != nil {
			return &Error{Problem: "it cannot be encoded again", Err: err}
		}
		if bytes.Equal(again, payload) {
			return nil
		}
		first, failed := marshal(c, was)
		if says := failed == nil && bytes.Equal(first, payload); !says {
			return nil
		}
	}
	return &Error{Problem: "it is encoded in other bytes when it has come back"}
}

// Again returns a value as it comes back from the Codec, both as pointers.
func Again(c protocol.Codec, value any) (any, error) {
	was := reflect.ValueOf(value).Elem()
	payload, err := marshal(c, was)
	if err != nil {
		return nil, err
	}
	back := reflect.New(was.Type())
	return back.Interface(), unmarshal(c, payload, back)
}

// marshal encodes what the Guard would: a Codec may reuse what it returned.
func marshal(c protocol.Codec, v reflect.Value) (payload []byte, err error) {
	defer recoverCodec(&err)
	payload, err = c.Marshal(v.Interface())
	return bytes.Clone(payload), err
}

func unmarshal(c protocol.Codec, payload []byte, into reflect.Value) (err error) {
	defer recoverCodec(&err)
	return c.Unmarshal(bytes.Clone(payload), into.Interface())
}

// recoverCodec makes a Codec's panic an error.
func recoverCodec(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("codec panicked: %v", r)
	}
}
