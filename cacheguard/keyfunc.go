package cacheguard

import (
	"encoding"
	"fmt"
	"reflect"
	"strconv"
)

// keyText makes the text of keys, which is empty if a key has none.
type keyText[K any] struct {
	kind reflect.Kind   // Int64, Uint64 or String: keys are of such a type, and are their own text
	of   func(K) string // else
}

// keyTextOf is the default of CacheConfig.Key. It never gives two keys the same text by itself: integers and strings are their
// own text, and other types are asked for theirs.
func keyTextOf[K any]() (keyText[K], error) {
	t := reflect.TypeFor[K]()
	switch t.Kind() {
	case reflect.String:
		return keyText[K]{kind: reflect.String}, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return keyText[K]{kind: reflect.Int64}, nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return keyText[K]{kind: reflect.Uint64}, nil
	case reflect.Interface:
		return keyText[K]{}, fmt.Errorf("set it, as values of different types behind %v can have the same text", t)
	case reflect.Pointer:
		return keyText[K]{}, fmt.Errorf("set it, as %v is a pointer", t)
	}
	marshaler, stringer := reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[fmt.Stringer]()
	switch {
	case t.Implements(marshaler) && !promoted(t, marshaler):
		return keyText[K]{of: func(k K) string {
			text, err := any(k).(encoding.TextMarshaler).MarshalText()
			if err != nil {
				return ""
			}
			return string(text)
		}}, nil
	case t.Implements(stringer) && !promoted(t, stringer) && !promoted(t, marshaler):
		return keyText[K]{of: func(k K) string { return any(k).(fmt.Stringer).String() }}, nil
	}
	return keyText[K]{}, fmt.Errorf("set it, as %v is no integer and no string, and has neither MarshalText nor String of its own", t)
}

// promoted reports whether a struct may have its text from an embedded field, which ignores the other fields.
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

// appendTo appends the text of k.
func (x *keyText[K]) appendTo(text []byte, k K) []byte {
	switch n := any(k).(type) {
	case int64:
		if x.of == nil {
			return strconv.AppendInt(text, n, 10)
		}
	case string:
		if x.of == nil {
			return append(text, n...)
		}
	}
	switch x.kind { //nolint:exhaustive // see keyText
	case reflect.Int64:
		return strconv.AppendInt(text, reflect.ValueOf(k).Int(), 10)
	case reflect.Uint64:
		return strconv.AppendUint(text, reflect.ValueOf(k).Uint(), 10)
	case reflect.String:
		return append(text, reflect.ValueOf(k).String()...)
	}
	return append(text, x.of(k)...)
}
