package protocol

import (
	"bytes"
	"fmt"
)

// Codec is the Codec of package cacheguard.
type Codec interface {
	Marshal(v any) ([]byte, error)
	Unmarshal(data []byte, v any) error // v is a pointer
}

// Shape is what the untyped machinery needs of a value's type. Values travel through it as *V in an any. Shapes of the
// same type are equal, so they also tell apart the flights of calls that want different types of one key.
type Shape interface {
	Encode(c Codec, value any) (Kind, []byte, error)
	Decode(c Codec, e Entry) (any, error)
}

// ShapeOf is the shape of V.
type ShapeOf[V any] struct{}

// Encode returns what the payload of an entry is, and the payload, which is no part of the value.
func (ShapeOf[V]) Encode(c Codec, value any) (k Kind, payload []byte, err error) {
	defer recoverCodec(&err)
	switch v := value.(type) {
	case *[]byte:
		return Raw, bytes.Clone(*v), nil
	case *string:
		return Raw, []byte(*v), nil
	case *V:
		if asks, is := c.(interface{ MarshalPointer(v any) ([]byte, error) }); is { // as codec.Checked: an interface hides V
			payload, err = asks.MarshalPointer(v)
		} else {
			payload, err = c.Marshal(*v)
		}
	}
	return Coded, payload, err
}

// Decode returns the value of an entry, a *V.
func (ShapeOf[V]) Decode(c Codec, e Entry) (any, error) {
	v := new(V)
	return v, DecodeValue(c, e, v)
}

// DecodeValue decodes the value of an entry into v.
func DecodeValue[V any](c Codec, e Entry, v *V) (err error) {
	defer recoverCodec(&err)
	raw := true
	switch p := any(v).(type) {
	case *[]byte:
		*p = e.Payload[:len(e.Payload):len(e.Payload)]
	case *string:
		*p = string(e.Payload)
	default:
		raw = false
	}
	switch {
	case raw != (e.Kind == Raw):
		return fmt.Errorf("entry is of another type than %T", *v)
	case !raw:
		err = c.Unmarshal(e.Payload, v)
	}
	return err
}

// recoverCodec makes a Codec's panic an error: it must not take down those who only share its work.
func recoverCodec(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("codec panicked: %v", r)
	}
}
