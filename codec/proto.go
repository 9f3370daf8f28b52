package codec

import (
	"fmt"
	"reflect"

	"google.golang.org/protobuf/proto"

	"github.com/cacheguard/go/cacheguard"
)

type protobuf struct{}

// Proto encodes values as Protocol Buffers (google.golang.org/protobuf). They have to be pointers to messages, as in
// cacheguard.Get[*pb.Product]. Another type, and a nil message, reach their callers but not the cache: the error names the type
// (EventUnstorable, Logger).
func Proto() cacheguard.Codec { return protobuf{} }

func (protobuf) Marshal(v any) ([]byte, error) {
	message, ok := v.(proto.Message)
	if !ok {
		return nil, notMessage(reflect.TypeOf(v))
	}
	if !message.ProtoReflect().IsValid() {
		return nil, fmt.Errorf("codec: proto: a nil %T cannot be stored", v)
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(message) // equal messages have one encoding
}

func (protobuf) Unmarshal(data []byte, v any) error {
	target := reflect.ValueOf(v)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		return fmt.Errorf("codec: proto: %T is no pointer to a value", v)
	}
	target = target.Elem()
	if target.Kind() != reflect.Pointer {
		return notMessage(target.Type())
	}
	message := reflect.New(target.Type().Elem())
	m, ok := message.Interface().(proto.Message)
	if !ok {
		return notMessage(target.Type())
	}
	if err := proto.Unmarshal(data, m); err != nil {
		return err
	}
	target.Set(message)
	return nil
}

func notMessage(t reflect.Type) error {
	if t != nil && t.Kind() != reflect.Pointer && reflect.PointerTo(t).Implements(reflect.TypeFor[proto.Message]()) {
		return fmt.Errorf("codec: proto: %v is no proto.Message: use *%v", t, t)
	}
	return fmt.Errorf("codec: proto: %v is no proto.Message", t)
}
