package cacheguard

import (
	"encoding/json"
	"fmt"
)

// Codec turns values into bytes and back. []byte and string values never pass through it.
type Codec interface {
	Marshal(v any) ([]byte, error)
	Unmarshal(data []byte, v any) error // v is a pointer
}

// jsonCodec is the default.
type jsonCodec struct{}

func (jsonCodec) Marshal(v any) ([]byte, error)      { return json.Marshal(v) }
func (jsonCodec) Unmarshal(data []byte, v any) error { return json.Unmarshal(data, v) }

// shape is what the untyped machinery needs of a value's type. Values travel through it as *V in an any. Shapes of the
// same type are equal, so they also tell apart the flights of calls that want different types of one key.
type shape interface {
	encode(c Codec, value any) (kind, []byte, error)
	decode(c Codec, e entry) (any, error)
}

type shapeOf[V any] struct{}

func (shapeOf[V]) encode(c Codec, value any) (k kind, payload []byte, err error) {
	defer recoverCodec(&err)
	switch v := value.(type) {
	case *[]byte:
		return kindRaw, *v, nil
	case *string:
		return kindRaw, []byte(*v), nil
	case *V:
		payload, err = c.Marshal(*v)
	}
	return kindCoded, payload, err
}

func (shapeOf[V]) decode(c Codec, e entry) (any, error) {
	v := new(V)
	return v, decodeValue(c, e, v)
}

func decodeValue[V any](c Codec, e entry, v *V) (err error) {
	defer recoverCodec(&err)
	raw := true
	switch p := any(v).(type) {
	case *[]byte:
		*p = e.payload[:len(e.payload):len(e.payload)]
	case *string:
		*p = string(e.payload)
	default:
		raw = false
	}
	switch {
	case raw != (e.kind == kindRaw):
		return fmt.Errorf("entry is of another type than %T", *v)
	case !raw:
		err = c.Unmarshal(e.payload, v)
	}
	return err
}

// recoverCodec makes a Codec's panic an error: it must not take down those who only share its work.
func recoverCodec(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("codec panicked: %v", r)
	}
}
