package cacheguardtest

import (
	"encoding/json"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/cache/fidelity"
	"github.com/cacheguard/go/internal/testing/roundtrip"
)

// Survives fails the test if a value of the type does not come back from the Codec as it was, and names the first field
// that does not: one without an exported name, with the tag json:"-", behind an interface, or left out by a method that
// encodes it. Callers that load get such a field, and callers that hit do not. The Guards of a test look at each value
// that they are to store like this; Survives is for types that no test stores. An empty slice or map counts as nil.
// What encodes itself is compared by its method Equal or Cmp or, without one, by its encoding and its exported fields.
// Nor may the bytes in which it is encoded change.
//
// Without values it makes one, with something in each field, also in those that are not exported, and an int behind
// any. What it cannot know is for you to pass: a value of what encodes itself, but for time.Time, stays zero, and so
// does an interface with methods, which a nil Codec refuses as NewCache does. A nil Codec is the default,
// encoding/json.
func Survives[V any](t testing.TB, codec cacheguard.Codec, values ...V) {
	t.Helper()
	binary := codec != nil
	if codec == nil {
		codec = jsonCodec{}
		if path, why := fidelity.Impossible(reflect.TypeFor[V]()); why != "" {
			t.Errorf("cacheguardtest: a %v never survives encoding/json: %s: %s", reflect.TypeFor[V](), path, why)
			return
		}
	}
	if len(values) == 0 {
		values = make([]V, 1)
		filler{binary}.fill(reflect.ValueOf(&values[0]).Elem(), 0)
	}
	for i := range values {
		if _, err := roundtrip.Check(codec, &values[i]); err != nil {
			t.Errorf("cacheguardtest: a %v does not survive its Codec: %v", reflect.TypeFor[V](), err)
		}
	}
}

type jsonCodec struct{}

func (jsonCodec) Marshal(v any) ([]byte, error)      { return json.Marshal(v) }
func (jsonCodec) Unmarshal(data []byte, v any) error { return json.Unmarshal(data, v) }

// deepest is how far down there is something in fields: a type may contain itself.
const deepest = 6

// filler puts something into values.
type filler struct {
	binary bool // the Codec may ask values for their binary form
}

// fill puts something into what it can, once.
func (f filler) fill(v reflect.Value, depth int) {
	switch {
	case depth > deepest, v.Type() == reflect.TypeFor[sync.Mutex](), v.Type() == reflect.TypeFor[sync.RWMutex](): // nobody misses the state of a lock
		return
	case !v.CanSet(): // it is not exported
		v = reflect.NewAt(v.Type(), v.Addr().UnsafePointer()).Elem()
	}
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(time.Date(2026, 11, 22, 3, 4, 5, 678_000_000, time.UTC)))
	}
	if f.encodesItself(v.Type()) { // what it may hold is not known
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		v.SetUint(7)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(1.5)
	case reflect.String:
		v.SetString("7")
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Name != "_" {
				f.fill(v.Field(i), depth+1)
			}
		}
	case reflect.Interface:
		if v.NumMethod() == 0 {
			v.Set(reflect.ValueOf(7))
		}
	default:
		f.fillElements(v, depth)
	}
}

func (f filler) fillElements(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem(), depth+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		f.fill(v.Index(0), depth+1)
	case reflect.Array:
		for i := range v.Len() {
			f.fill(v.Index(i), depth+1)
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		f.fill(key, depth+1)
		f.fill(value, depth+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	default: // a function or a channel
	}
}

// encodesItself reports whether the Codec asks values of the type for their encoding. One that has it from what it
// embeds, as a time, may not know of its other fields.
func (f filler) encodesItself(t reflect.Type) bool {
	_, binary := reflect.PointerTo(t).MethodByName("MarshalBinary")
	if !roundtrip.EncodesItself(t) && !(f.binary && binary) {
		return false
	}
	for i := 0; t.Kind() == reflect.Struct && i < t.NumField(); i++ {
		if t.Field(i).Anonymous {
			return false
		}
	}
	return true
}
