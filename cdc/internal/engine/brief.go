package engine

import (
	"fmt"
	"strings"
)

// brief shortens an error that joins one for each of thousands of keys: its text is the first one's.
type brief struct{ error }

func (b brief) Error() string {
	text := b.error.Error()
	first, rest, more := strings.Cut(text, "\n")
	if !more {
		return text
	}
	return fmt.Sprintf("%s (and %d more)", first, strings.Count(rest, "\n")+1)
}

func (b brief) Unwrap() error { return b.error }
