package codec

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/cacheguard/go/cacheguard"
)

// roundTrip encodes and decodes a value as a Guard does.
func roundTrip[V any](t *testing.T, c cacheguard.Codec, v V) (got V) {
	t.Helper()
	data, err := c.Marshal(v)
	if err != nil {
		t.Fatalf("%T: %v", v, err)
	}
	if err := c.Unmarshal(data, &got); err != nil {
		t.Fatalf("%T: %v", v, err)
	}
	return got
}

type product struct {
	ID    int64
	Name  string `msgpack:"n"`
	Tags  []string
	Seen  time.Time
	Stock map[string]string
}

func TestMsgPackHasTheValueBack(t *testing.T) {
	t.Parallel()
	p := product{ID: 1 << 40, Name: "tea", Tags: []string{"a", "b"}, Seen: time.Unix(1, 2), Stock: map[string]string{"x": "1", "y": "-2"}}
	got := roundTrip(t, MsgPack(), p)
	if got.ID != p.ID || got.Name != p.Name || len(got.Tags) != 2 || !got.Seen.Equal(p.Seen) || got.Stock["y"] != "-2" {
		t.Errorf("%+v, want %+v", got, p)
	}
	if got := roundTrip(t, MsgPack(), &p); got == nil || got.Name != "tea" {
		t.Errorf("%+v", got)
	}
	if got := roundTrip[*product](t, MsgPack(), nil); got != nil {
		t.Errorf("%+v, want nil", got)
	}
	if got := roundTrip(t, MsgPack(), 42); got != 42 {
		t.Errorf("%d, want 42", got)
	}
}

func TestEqualMapsHaveEqualEncodings(t *testing.T) {
	t.Parallel()
	stock, fields := map[string]string{}, map[string]*structpb.Value{}
	for _, name := range strings.Split("a b c d e f g h i j k l m n o p", " ") {
		stock[name], fields[name] = name, structpb.NewStringValue(name)
	}
	for range 20 {
		a, _ := MsgPack().Marshal(product{Stock: stock})
		b, _ := MsgPack().Marshal(product{Stock: stock})
		if string(a) != string(b) {
			t.Fatal("msgpack: two encodings of a map differ")
		}
		a, _ = Proto().Marshal(&structpb.Struct{Fields: fields})
		b, _ = Proto().Marshal(&structpb.Struct{Fields: fields})
		if string(a) != string(b) {
			t.Fatal("proto: two encodings of a map differ")
		}
	}
}

func TestProtoHasTheMessageBack(t *testing.T) {
	t.Parallel()
	for _, m := range []*wrapperspb.StringValue{wrapperspb.String("tea"), wrapperspb.String("")} {
		if got := roundTrip(t, Proto(), m); !proto.Equal(got, m) {
			t.Errorf("%v, want %v", got, m)
		}
	}
	if got := roundTrip(t, Proto(), timestamppb.New(time.Unix(7, 8))); got.AsTime().Unix() != 7 {
		t.Errorf("%v", got)
	}
}

func TestProtoNamesATypeThatItDoesNotEncode(t *testing.T) {
	t.Parallel()
	for want, v := range map[string]any{
		"int is no proto.Message":                                             7,
		"*codec.product is no proto.Message":                                  &product{},
		"codec.product is no proto.Message":                                   product{},
		"wrapperspb.BoolValue is no proto.Message: use *wrapperspb.BoolValue": wrapperspb.BoolValue{},
		"a nil *wrapperspb.BoolValue cannot be stored":                        (*wrapperspb.BoolValue)(nil),
		"<nil> is no proto.Message":                                           nil,
	} {
		if _, err := Proto().Marshal(v); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%T: error %v, want %q", v, err, want)
		}
	}
	var number int
	var record *product
	var message proto.Message
	for want, v := range map[string]any{
		"int is no proto.Message":                       &number,
		"*codec.product is no proto.Message":            &record,
		"protoreflect.ProtoMessage is no proto.Message": &message,
		"is no pointer to a value":                      nil,
	} {
		if err := Proto().Unmarshal(nil, v); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%T: error %v, want %q", v, err, want)
		}
	}
	if err := Proto().Unmarshal([]byte{0xff}, new(*wrapperspb.BoolValue)); err == nil {
		t.Error("bytes that are no message were read")
	}
}

func FuzzProto(f *testing.F) {
	for _, m := range []proto.Message{wrapperspb.String("tea"), timestamppb.New(time.Unix(7, 8)), structpb.NewListValue(&structpb.ListValue{})} {
		data, err := Proto().Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add(bytes.Repeat([]byte{0x32, 0x7f}, 100)) // lists in each other
	for _, found := range []string{
		"\n\x830", "C\xd00\xcf0", "\xc3\xc300", "\x83\x9c0", "\b", "2\x8b", "\xdc", "$", "1", " ", "\n", "%",
	} {
		f.Add([]byte(found))
	}
	fuzzed(f, Proto(), func() []any {
		return []any{new(*wrapperspb.StringValue), new(*timestamppb.Timestamp), new(*structpb.Value), new(*structpb.Struct), new(int)}
	})
}
