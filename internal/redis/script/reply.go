package script

import "fmt"

// Number is a part of a reply; 0 if there is none, or if it is no number.
func Number(reply []any, i int) int64 { return part[int64](reply, i) }

// String is a part of a reply; empty if there is none, or if it is no text.
func String(reply []any, i int) string { return part[string](reply, i) }

func part[T any](reply []any, i int) (p T) {
	if i < len(reply) {
		p, _ = reply[i].(T)
	}
	return p
}

// Fields are the fields of a hash, with a client of either version of Redis' protocol.
func Fields(reply any) map[string]string {
	fields := make(map[string]string)
	switch reply := reply.(type) {
	case []any:
		for i := 0; i+1 < len(reply); i += 2 {
			fields[fmt.Sprint(reply[i])] = fmt.Sprint(reply[i+1])
		}
	case map[any]any:
		for name, value := range reply {
			fields[fmt.Sprint(name)] = fmt.Sprint(value)
		}
	}
	return fields
}
