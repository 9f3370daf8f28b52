package codec

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/roundtrip"
)

// Checked encodes values as inner does, and refuses those that do not come back from it as they were: the callers of a load
// would get another value than those of a hit. Nil is the default of a Guard, encoding/json. As with any Codec that refuses, the value
// reaches its callers and is not stored, so each Get of it loads, and EventUnstorable and the Logger have the key and the error,
// an *AlteredError. So it is for tests, and for one instance of a fleet, a canary: entries are the same with it and without it. Decoding
// costs what it does without it. A value that comes back is encoded two times and decoded once; one that does not, or whose encoding
// has no order, up to 17 times.
//
// Each value is decoded again and compared, and so are the bytes in which it is encoded before and after that. An empty slice or map
// counts as nil, and what is not a number as equal to itself. Fields that are not exported count as well. What encodes itself (by
// MarshalJSON, MarshalText, EncodeMsgpack, MarshalMsgpack, or as a message) is compared by its method Equal or Cmp. Without one, its encoding and its exported
// fields count. A type that leaves something out on purpose says so with both, its encoding and an Equal.
//
// It does not see:
//
//   - []byte, strings, and pages of package middleware: they pass through no Codec, and come back as they are.
//   - what shares a pointer, and what is more than 100 levels down.
//   - bytes that differ by chance, as those of a map in a Codec that does not sort it, or with a nonce: then the values alone
//     are compared.
//   - the type V of a Cache that is an interface, if another Codec is around this one: it takes an int in an any for an int.
//
// With it, NewCache does not refuse types whose values encoding/json never brings back; it refuses the values instead. It is safe for
// concurrent use if inner is. A panic of inner is an error.
func Checked(inner cacheguard.Codec) cacheguard.Codec {
	if inner == nil {
		inner = jsonCodec{}
	}
	return checked{inner}
}

// An AlteredError says that a value does not come back from its Codec as it was.
type AlteredError struct {
	Path    string // the first field that differs, below the type: "shop.Product.Tags[1]", or "shop.Product.ByName[…]" in a map
	Problem string // what is wrong with it, in words
	Err     error  // the Codec's, which cannot decode what it has encoded, or encode it again; nil: the value is another one
}

// Error names the field.
func (e *AlteredError) Error() string {
	what := fmt.Sprintf("codec: the value does not come back as it was: %s: %s", e.Path, e.Problem)
	if e.Err != nil {
		return what + ": " + e.Err.Error()
	}
	return what
}

// Unwrap returns the error of the Codec.
func (e *AlteredError) Unwrap() error { return e.Err }

type checked struct{ cacheguard.Codec }

func (c checked) Marshal(v any) ([]byte, error) {
	if v == nil { // of which type, nobody knows
		return c.Codec.Marshal(v)
	}
	value := reflect.New(reflect.TypeOf(v))
	value.Elem().Set(reflect.ValueOf(v))
	return c.MarshalPointer(value.Interface())
}

// MarshalPointer is what a Guard calls: the pointer says what the type is.
func (c checked) MarshalPointer(v any) ([]byte, error) {
	payload, err := roundtrip.Check(c.Codec, v)
	var altered *roundtrip.Error
	if errors.As(err, &altered) {
		return nil, &AlteredError{altered.Path, altered.Problem, altered.Err}
	}
	return payload, err
}

// jsonCodec is the default of a Guard.
type jsonCodec struct{}

func (jsonCodec) Marshal(v any) ([]byte, error)      { return json.Marshal(v) }
func (jsonCodec) Unmarshal(data []byte, v any) error { return json.Unmarshal(data, v) }
