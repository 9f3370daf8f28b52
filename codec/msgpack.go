package codec

import (
	"bytes"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/cacheguard/go/cacheguard"
)

type msgPack struct{}

// MsgPack encodes values as MessagePack (github.com/vmihailenco/msgpack). Fields are named by their `msgpack` tags, else as in Go.
// Encodings of equal values differ if they have a map other than map[string]string,
// map[string]bool and map[string]any. Arrays and maps may be in each other 10,000 deep. Bytes that claim to have more than there is are
// refused before anything is made for them.
func MsgPack() cacheguard.Codec { return msgPack{} }

func (msgPack) Marshal(v any) ([]byte, error) {
	enc := msgpack.GetEncoder()
	defer msgpack.PutEncoder(enc)
	var out bytes.Buffer
	enc.Reset(&out)
	enc.SetSortMapKeys(true)
	enc.UseCompactInts(true)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	_, err := bounded(out.Bytes()) // else it could be stored, and never be read
	return out.Bytes(), err
}

func (msgPack) Unmarshal(data []byte, v any) error {
	maps, err := bounded(data)
	if err != nil {
		return err
	}
	dec := msgpack.GetDecoder()
	defer msgpack.PutDecoder(dec)
	dec.Reset(&reader{bytes.NewReader(data), maps})
	// Not UsePreallocateValues, as msgpack.Unmarshal has it: it leaves a goroutine behind for each type.
	return dec.Decode(v)
}
