package roundtrip

import (
	"bytes"
	"fmt"
	"reflect"
)

const deepest = 100 // a difference further down is not looked for

// Difference says where what came back is not what it was: the path of a field, below the type, and what is wrong with it; nothing, if nothing is. Both are
// *V. An empty slice or map is as good as nil. What encodes itself is compared by its method Equal or Cmp or, without one, by its encoding and its exported fields.
func Difference(was, is any, encode func(any) ([]byte, error)) (path, what string) {
	defer func() {
		if recover() != nil { // a method of the user's
			path, what = "", ""
		}
	}()
	a, b := reflect.ValueOf(was).Elem(), reflect.ValueOf(is).Elem()
	c := comparison{encode: encode}
	return c.differ(a.Type().String(), a, b, 0)
}

// Identical reports whether nothing tells apart what two *V point at, no field that others cannot see either, and no nil from what is empty. How a
// message of Protocol Buffers holds what it has is its own affair: that changes while others encode it.
func Identical(was, is any) bool {
	steps := mostSteps
	_, what := comparison{held: &steps}.differ("", reflect.ValueOf(was).Elem(), reflect.ValueOf(is).Elem(), 0)
	return what == ""
}

// mostSteps bounds what Identical looks at: what a value hides may lead back to itself.
const mostSteps = 1 << 16

type comparison struct {
	encode func(any) ([]byte, error)
	held   *int // what encodes itself is compared by what it consists of, in so many steps; nil: by its encoding
}

// leaves reports whether the comparison of what is held leaves out a value of this type.
func (c comparison) leaves(t reflect.Type) bool {
	if c.held == nil {
		return false
	}
	*c.held--
	return *c.held < 0 || isMessage(t)
}

const (
	lost    = "it does not come back"
	changed = "it comes back otherwise"
)

func (c comparison) differ(path string, a, b reflect.Value, depth int) (string, string) {
	switch {
	case depth > deepest, c.leaves(a.Type()):
		return "", ""
	case c.held != nil:
	case a.Kind() != reflect.Pointer && EncodesItself(a.Type()):
		return c.differItself(path, a, b, depth)
	}
	return c.differWithin(path, a, b, depth, func(reflect.StructField) bool { return true })
}

// differWithin looks at what the value consists of, and at the fields that count.
func (c comparison) differWithin(path string, a, b reflect.Value, depth int, counts func(reflect.StructField) bool) (string, string) {
	if k := a.Kind(); c.held != nil && (k == reflect.Slice || k == reflect.Map) && a.IsNil() != b.IsNil() {
		return path, changed
	}
	switch a.Kind() {
	case reflect.Struct:
		for i := range a.NumField() {
			f := a.Type().Field(i)
			if !counts(f) {
				continue
			}
			if at, what := c.differ(path+"."+f.Name, a.Field(i), b.Field(i), depth+1); what != "" {
				return at, what
			}
		}
	case reflect.Pointer, reflect.Interface:
		switch {
		case a.IsNil() || b.IsNil():
			return where(path, lost, a.IsNil() && b.IsNil())
		case a.Elem().Type() != b.Elem().Type():
			return path, fmt.Sprintf("a %v comes back as a %v", a.Elem().Type(), b.Elem().Type())
		}
		return c.differ(path, a.Elem(), b.Elem(), depth+1)
	case reflect.Slice, reflect.Array:
		if a.Len() != b.Len() {
			return path, lost
		}
		if a.Kind() == reflect.Slice && a.Type().Elem().Kind() == reflect.Uint8 {
			return where(path, changed, bytes.Equal(a.Bytes(), b.Bytes()))
		}
		for i := range a.Len() {
			if at, what := c.differ(fmt.Sprintf("%s[%d]", path, i), a.Index(i), b.Index(i), depth+1); what != "" {
				return at, what
			}
		}
	case reflect.Map:
		return c.differInMap(path, a, b, depth)
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return where(path, lost, a.IsNil() == b.IsNil())
	default:
		return where(path, changed, a.Equal(b) || a.CanFloat() && a.Float() != a.Float() && b.Float() != b.Float()) // also one that is not a number
	}
	return "", ""
}

func (c comparison) differInMap(path string, a, b reflect.Value, depth int) (string, string) {
	if a.Len() != b.Len() {
		return path, lost
	}
	for _, key := range a.MapKeys() {
		other := b.MapIndex(key)
		if !other.IsValid() {
			return path, "a key of it does not come back"
		}
		if at, what := c.differ(path+"[…]", a.MapIndex(key), other, depth+1); what != "" {
			return at, what
		}
	}
	return "", ""
}

func where(path, what string, same bool) (string, string) {
	if same {
		return "", ""
	}
	return path, what
}

// differItself compares what encodes itself. An encoding may lack what the value has, as that of a struct which embeds a time and so has its MarshalJSON. So
// what others see of the value counts, too: exported fields, and that it is not zero. How it holds the rest, and of bytes, is its own affair.
func (c comparison) differItself(path string, a, b reflect.Value, depth int) (string, string) {
	isLost := b.IsZero() && !a.IsZero()
	if !a.CanInterface() { // in a field that nobody else sees, and nobody can ask
		return where(path, lost, !isLost)
	}
	if same, known := ask(a, b); known {
		return where(path, changed, same)
	}
	x, err1 := c.encode(addressed(a).Interface())
	y, err2 := c.encode(addressed(b).Interface())
	switch {
	case err1 != nil || err2 != nil || !bytes.Equal(x, y):
		return path, changed
	case isMessage(a.Type()) || a.Kind() == reflect.Slice && a.Type().Elem().Kind() == reflect.Uint8:
		return "", ""
	}
	if at, what := c.differWithin(path, a, b, depth, reflect.StructField.IsExported); what != "" {
		return at, what
	}
	return where(path, lost, !isLost)
}

// addressed is the pointer to what has an address, which has more methods.
func addressed(v reflect.Value) reflect.Value {
	if v.CanAddr() {
		return v.Addr()
	}
	return v
}

// ask has the value itself say whether it is as the other, if it can.
func ask(a, b reflect.Value) (same, known bool) {
	for i, method := range []reflect.Value{addressed(a).MethodByName("Equal"), addressed(a).MethodByName("Cmp")} {
		if !method.IsValid() || method.Type().NumIn() != 1 || method.Type().NumOut() != 1 {
			continue
		}
		for _, other := range []reflect.Value{b, addressed(b)} {
			if method.Type().In(0) != other.Type() {
				continue
			}
			switch out := method.Call([]reflect.Value{other})[0]; {
			case i == 0 && out.Kind() == reflect.Bool:
				return out.Bool(), true
			case i == 1 && out.CanInt():
				return out.Int() == 0, true
			}
		}
	}
	return false, false
}

// isMessage reports whether the type is one of Protocol Buffers.
func isMessage(t reflect.Type) bool {
	_, is := t.MethodByName("ProtoReflect")
	_, by := reflect.PointerTo(t).MethodByName("ProtoReflect")
	return t.Kind() != reflect.Interface && (is || by)
}

// EncodesItself reports whether values of the type, or pointers to them, have a method by which codecs encode them, so that their fields mean nothing.
func EncodesItself(t reflect.Type) bool {
	if t.Kind() == reflect.Interface {
		return false
	}
	return encodes(t) || encodes(reflect.PointerTo(t))
}

// encodes asks for each method by a constant. For any other name the linker would keep all methods of all types in the user's program: 8 MB of
// go-redis alone.
func encodes(t reflect.Type) bool {
	_, json := t.MethodByName("MarshalJSON")
	_, text := t.MethodByName("MarshalText")
	_, msgpack := t.MethodByName("EncodeMsgpack")
	_, alone := t.MethodByName("MarshalMsgpack")
	_, proto := t.MethodByName("ProtoReflect")
	return json || text || msgpack || alone || proto
}
