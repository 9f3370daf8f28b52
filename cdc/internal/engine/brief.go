package engine

import (
	"fmt"
	"strings"
)

// brief is an error that may be one for each of thousands of keys. Its text is that of the first.
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
