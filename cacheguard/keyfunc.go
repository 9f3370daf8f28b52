package cacheguard

import (
	"encoding"
	"fmt"
	"reflect"
	"strconv"
)

// keyText appends the text of a key, which is empty if the key has none.
type keyText[K any] func(to []byte, k K) []byte

// keyTextOf is the default of CacheConfig.Key. Two keys never have the same text by this function's doing: integers and strings
// are themselves, and what has a text of its own is asked for it.
func keyTextOf[K any]() (keyText[K], error) {
	t := reflect.TypeFor[K]()
	switch t.Kind() {
	case reflect.String:
		return stringText[K], nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return integerText[K](t), nil
	case reflect.Interface:
		return nil, fmt.Errorf("set it, as values of different types behind %v can have the same text", t)
	case reflect.Pointer:
		return nil, fmt.Errorf("set it, as %v is a pointer", t)
	}
	marshaler, stringer := reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[fmt.Stringer]()
	switch {
	case t.Implements(marshaler) && !promoted(t, marshaler):
		return func(to []byte, k K) []byte {
			text, err := any(k).(encoding.TextMarshaler).MarshalText()
			if err != nil {
				return to
			}
			return append(to, text...)
		}, nil
	case t.Implements(stringer) && !promoted(t, stringer) && !promoted(t, marshaler):
		return func(to []byte, k K) []byte { return append(to, any(k).(fmt.Stringer).String()...) }, nil
	}
	return nil, fmt.Errorf("set it, as %v is no integer and no string, and has neither MarshalText nor String of its own", t)
}

// promoted reports whether a struct may have its text from an embedded field, which says nothing of the other fields.
func promoted(t, from reflect.Type) bool {
	if t.Kind() != reflect.Struct || t.NumField() < 2 {
		return false
	}
	for i := range t.NumField() {
		if f := t.Field(i); f.Anonymous && f.Type.Implements(from) {
			return true
		}
	}
	return false
}

// integerText is the text of integers. The common types need no reflection.
func integerText[K any](t reflect.Type) keyText[K] {
	signed := t.Kind() <= reflect.Int64
	return func(to []byte, k K) []byte {
		switch n := any(k).(type) {
		case int64:
			return strconv.AppendInt(to, n, 10)
		case int:
			return strconv.AppendInt(to, int64(n), 10)
		case uint64:
			return strconv.AppendUint(to, n, 10)
		}
		if signed {
			return strconv.AppendInt(to, reflect.ValueOf(k).Int(), 10)
		}
		return strconv.AppendUint(to, reflect.ValueOf(k).Uint(), 10)
	}
}

func stringText[K any](to []byte, k K) []byte {
	if s, ok := any(k).(string); ok {
		return append(to, s...)
	}
	return append(to, reflect.ValueOf(k).String()...)
}
