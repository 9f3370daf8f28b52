package protocol

import (
	"bytes"
	"encoding/binary"

	"github.com/cacheguard/go/internal/redis/script"
)

// Inspect looks at all that there is of a key. Package inspect reads the reply.
func (k *Keyspace) Inspect(valueKey string) *script.Call {
	return &script.Call{Script: inspectScript, Args: []any{InspectedLen}, Keys: []string{
		valueKey, LeaseKey(valueKey), IntentKey(valueKey), untilKey(valueKey), errorKey(valueKey),
	}}
}

// InspectedLen is how much of an entry is looked at: more than what comes before any payload.
const InspectedLen = 64 << 10

// DecodeBeginning decodes what there is of an entry of the user's key that is longer than what was looked at: it has no
// whole payload, and whether that is intact is not known.
func DecodeBeginning(key string, beginning []byte) (Entry, error) {
	head := bytes.Clone(beginning)
	binary.BigEndian.PutUint32(head[sumAt:], checksum(key, head)) // of what there is
	return DecodeEntry(key, head)
}
