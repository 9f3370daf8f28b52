// Package fidelity knows types whose values encoding/json never brings back.
package fidelity

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
)

// Impossible says why encoding/json never brings values of the type back: the path of a field, below the type, and what
// is wrong with it; nothing, if it may. What may be nil or empty, below the value itself, may be so always, but for an
// interface: nobody declares one to leave it nil.
func Impossible(t reflect.Type) (path, what string) { return search{}.find(t.String(), t, itself) }

// presence says where something of a type is: maybe in a value, always if there is a value, or it is what the value
// consists of.
type presence int

const maybe, always, itself presence = 0, 1, 2

// search knows the types that it has seen, each with its presence.
type search map[[2]any]bool

func (s search) find(path string, t reflect.Type, is presence) (at, what string) {
	if s[[2]any{t, is}] || hasItsOwnWay(t) {
		return "", ""
	}
	s[[2]any{t, is}] = true
	switch kind := t.Kind(); {
	case kind == reflect.Interface && t.NumMethod() > 0:
		return path, fmt.Sprintf("nothing says which type is behind the interface %v", t)
	case is != maybe && slices.Contains(unknown, kind):
		return path, fmt.Sprintf("a %v cannot be encoded", t)
	case is == itself && slices.Contains(elements, kind), kind == reflect.Array:
		return s.find(path, t.Elem(), is)
	case slices.Contains(elements, kind):
		return s.find(path, t.Elem(), maybe)
	case kind == reflect.Struct:
		return s.findField(path, t, min(is, always))
	}
	return "", ""
}

var (
	unknown  = []reflect.Kind{reflect.Chan, reflect.Func, reflect.UnsafePointer, reflect.Complex64, reflect.Complex128}
	elements = []reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map} // have what may be missing, but for arrays
)

// findField looks at the fields that encoding/json sees, also at those of embedded structs.
func (s search) findField(path string, t reflect.Type, is presence) (at, what string) {
	visible := t.NumField() == 0
	for _, f := range reflect.VisibleFields(t) {
		below, in, hidden := path, is, !f.IsExported()
		for i := range f.Index {
			of := t.FieldByIndex(f.Index[:i+1])
			below, hidden = below+"."+of.Name, hidden || of.Tag.Get("json") == "-"
			if i < len(f.Index)-1 && of.Type.Kind() == reflect.Pointer {
				in = maybe
			}
		}
		visible = visible || f.Anonymous || !hidden
		if hidden || f.Anonymous && f.Type.Kind() != reflect.Interface {
			continue // what is embedded has fields, which come as well
		}
		if at, what = s.find(below, f.Type, in); what != "" {
			return at, what
		}
	}
	if !visible && is != maybe {
		return path, "none of its fields is exported"
	}
	return "", ""
}

// ways are by which a type has its own way into JSON, or out of it.
var ways = []reflect.Type{
	reflect.TypeFor[json.Marshaler](), reflect.TypeFor[json.Unmarshaler](), reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[encoding.TextUnmarshaler](),
}

// hasItsOwnWay reports whether the type encodes or decodes itself, or is a message of Protocol Buffers, whose
// interfaces may stay nil. It asks for that by a constant: for any other name the linker would keep all methods of all
// types in the user's program.
func hasItsOwnWay(t reflect.Type) bool {
	_, isMessage := reflect.PointerTo(t).MethodByName("ProtoReflect")
	return isMessage || slices.ContainsFunc(ways, reflect.PointerTo(t).Implements)
}
