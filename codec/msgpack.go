package codec

import (
	"bytes"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/cacheguard/go/cacheguard"
)

type msgPack struct{}

// MsgPack encodes values as MessagePack (github.com/vmihailenco/msgpack). Fields are named by their `msgpack` tags, else as in Go.
// Config.Verify compares encodings, and those of equal values differ if they have a map other than map[string]string,
// map[string]bool and map[string]any.
func MsgPack() cacheguard.Codec { return msgPack{} }

func (msgPack) Marshal(v any) ([]byte, error) {
	enc := msgpack.GetEncoder()
	defer msgpack.PutEncoder(enc)
	var out bytes.Buffer
	enc.Reset(&out)
	enc.SetSortMapKeys(true)
	enc.UseCompactInts(true)
	err := enc.Encode(v)
	return out.Bytes(), err
}

func (msgPack) Unmarshal(data []byte, v any) error { return msgpack.Unmarshal(data, v) }
