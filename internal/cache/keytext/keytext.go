// Package keytext makes the text of a Cache's keys.
package keytext

import (
	"encoding"
	"fmt"
	"reflect"
	"strconv"
)

// Text makes the text of keys, which is empty if a key has none.
type Text[K any] struct {
	kind reflect.Kind   // Int64, Uint64 or String: keys are of such a type, and are their own text
	of   func(K) string // else
}

// By returns the text that the function makes.
func By[K any](of func(K) string) Text[K] { return Text[K]{of: of} }

// Of is the default of CacheConfig.Key. It never gives two keys the same text by itself: integers and strings are their
// own text, and other types are asked for theirs.
func Of[K any]() (Text[K], error) {
	t := reflect.TypeFor[K]()
	switch t.Kind() {
	case reflect.String:
		return Text[K]{kind: reflect.String}, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return Text[K]{kind: reflect.Int64}, nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return Text[K]{kind: reflect.Uint64}, nil
	case reflect.Interface:
		return Text[K]{}, fmt.Errorf("set it, as values of different types behind %v can have the same text", t)
	case reflect.Pointer:
		return Text[K]{}, fmt.Errorf("set it, as %v is a pointer", t)
	}
	marshaler, stringer := reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[fmt.Stringer]()
	switch {
	case t.Implements(marshaler) && !promoted(t, marshaler):
		return Text[K]{of: func(k K) string {
			text, err := any(k).(encoding.TextMarshaler).MarshalText()
			if err != nil {
				return ""
			}
			return string(text)
		}}, nil
	case t.Implements(stringer) && !promoted(t, stringer) && !promoted(t, marshaler):
		return Text[K]{of: func(k K) string { return any(k).(fmt.Stringer).String() }}, nil
	}
	return Text[K]{}, fmt.Errorf("set it, as %v is no integer and no string, and has no MarshalText and no String, or embeds a type with one", t)
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

// AppendTo appends the text of k.
func (x *Text[K]) AppendTo(text []byte, k K) []byte {
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
	switch x.kind { //nolint:exhaustive // see Text
	case reflect.Int64:
		return strconv.AppendInt(text, reflect.ValueOf(k).Int(), 10)
	case reflect.Uint64:
		return strconv.AppendUint(text, reflect.ValueOf(k).Uint(), 10)
	case reflect.String:
		return append(text, reflect.ValueOf(k).String()...)
	}
	return append(text, x.of(k)...)
}
