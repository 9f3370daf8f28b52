package fidelity

import (
	"fmt"
	"reflect"
)

// Impossible says why encoding/json never brings values of the type back: the path of a field, below the type, and what is wrong with it; nothing, if it may. What
// may be nil or empty, below the value itself, may be so always.
func Impossible(t reflect.Type) (path, what string) {
	path = t.String()
	for range deepest { // the value itself, or what it consists of
		if EncodesItself(t) {
			return "", ""
		}
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			t = t.Elem()
			continue
		case reflect.Interface:
			if t.NumMethod() > 0 {
				return path, fmt.Sprintf("nothing says which type is behind the interface %v", t)
			}
		default:
		}
		return impossible(path, t)
	}
	return "", ""
}

func impossible(path string, t reflect.Type) (string, string) {
	if EncodesItself(t) {
		return "", ""
	}
	switch t.Kind() {
	case reflect.Chan, reflect.Func, reflect.UnsafePointer, reflect.Complex64, reflect.Complex128:
		return path, fmt.Sprintf("a %v cannot be encoded", t)
	case reflect.Array:
		return impossible(path, t.Elem())
	case reflect.Struct:
		return impossibleField(path, t)
	default:
	}
	return "", ""
}

func impossibleField(path string, t reflect.Type) (string, string) {
	visible := t.NumField() == 0
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			visible = true // its fields count as those of t, if it has any
		}
		if !f.IsExported() || f.Tag.Get("json") == "-" {
			continue
		}
		visible = true
		if f.Anonymous {
			continue
		}
		if at, what := impossible(path+"."+f.Name, f.Type); what != "" {
			return at, what
		}
	}
	return where(path, "none of its fields is exported", visible)
}
