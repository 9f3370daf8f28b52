package script

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
