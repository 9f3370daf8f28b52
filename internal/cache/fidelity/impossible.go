package fidelity

import (
	"fmt"
	"reflect"
)

// Impossible says why encoding/json never brings values of the type back: the path of a field, below the type, and what is wrong with it; nothing, if it may. What
// may be nil or empty, below the value itself, may be so always, but for an interface: nobody declares one to leave it nil.
func Impossible(t reflect.Type) (path, what string) {
	path = t.String()
	for range deepest { // the value itself, or what it consists of
		if hasItsOwnWay(t) || !hasElements(t) {
			break
		}
		t = t.Elem()
	}
	return search{}.impossible(path, t, true, nil)
}

// hasItsOwnWay reports whether the type encodes or decodes itself. It asks by constants, as encodes does.
func hasItsOwnWay(t reflect.Type) bool {
	_, json := reflect.PointerTo(t).MethodByName("UnmarshalJSON")
	_, text := reflect.PointerTo(t).MethodByName("UnmarshalText")
	return json || text || EncodesItself(t)
}

func hasElements(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return true
	default:
		return false
	}
}

// search knows the types that it has seen where a value always is, and where one may be.
type search map[place]struct{}

type place struct {
	of     reflect.Type
	always bool
}

// impossible looks at a type, which is embedded in the outer one, if there is one.
func (s search) impossible(path string, t reflect.Type, always bool, outer reflect.Type) (string, string) {
	here := place{t, always}
	if _, seen := s[here]; seen || hasItsOwnWay(t) {
		return "", ""
	}
	s[here] = struct{}{}
	switch t.Kind() {
	case reflect.Interface:
		return where(path, fmt.Sprintf("nothing says which type is behind the interface %v", t), t.NumMethod() == 0)
	case reflect.Chan, reflect.Func, reflect.UnsafePointer, reflect.Complex64, reflect.Complex128:
		return where(path, fmt.Sprintf("a %v cannot be encoded", t), !always)
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return s.impossible(path, t.Elem(), always && t.Kind() == reflect.Array, nil)
	case reflect.Struct:
		return s.impossibleField(path, t, always, outer)
	default:
		return "", ""
	}
}

// impossibleField looks at the fields that encoding/json sees. Those of an embedded struct count as the outer one's, if it has any, but for those
// which the outer one has itself.
func (s search) impossibleField(path string, t reflect.Type, always bool, outer reflect.Type) (string, string) {
	visible := t.NumField() == 0 || outer != nil
	for i := range t.NumField() {
		f := t.Field(i)
		if outer != nil {
			if own, is := outer.FieldByName(f.Name); is && len(own.Index) == 1 {
				continue
			}
		}
		of := f.Type
		if f.Anonymous && of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		embeds := f.Anonymous && of.Kind() == reflect.Struct
		visible = visible || f.Anonymous
		if f.Tag.Get("json") == "-" || !f.IsExported() && !embeds {
			continue
		}
		visible = true
		var within reflect.Type
		if embeds {
			within = t
		}
		if at, what := s.impossible(path+"."+f.Name, of, always && of == f.Type, within); what != "" {
			return at, what
		}
	}
	return where(path, "none of its fields is exported", visible || !always)
}
