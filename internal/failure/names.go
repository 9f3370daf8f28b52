// Package failure is what instances tell each other, and remember, of loads that failed.
package failure

import (
	"errors"
	"maps"
	"slices"
	"strings"
)

// Names are the errors of CacheConfig.Errors. A failure travels as a text. The names of the sentinels that it matches
// precede it: a NUL, the names with a unit separator between them, and another NUL. A text that itself begins with a NUL
// gets both NULs and no name.
type Names struct {
	names  []string // in order
	byName map[string]error
}

// MaxName is how many bytes a name may have.
const MaxName = 64

const (
	nameMark      = "\x00"
	nameSeparator = "\x1f"
	maxNames      = 8 // that one failure carries
)

// NewNames returns the names of the errors.
func NewNames(errs map[string]error) Names {
	return Names{names: slices.Sorted(maps.Keys(errs)), byName: maps.Clone(errs)}
}

// Encode is the text of the error as it travels.
func (s *Names) Encode(err error, text string) string {
	var matched []string
	for _, name := range s.names {
		if len(matched) < maxNames && errors.Is(err, s.byName[name]) {
			matched = append(matched, name)
		}
	}
	if len(matched) == 0 && !strings.HasPrefix(text, nameMark) {
		return text
	}
	return nameMark + strings.Join(matched, nameSeparator) + nameMark + text
}

// Decode is the inverse: the text, and the errors that the names stand for here. Other names are left out.
func (s *Names) Decode(travelled string) (text string, matched []error) {
	rest, marked := strings.CutPrefix(travelled, nameMark)
	names, text, ended := strings.Cut(rest, nameMark)
	if !marked || !ended {
		return travelled, nil
	}
	for name := range strings.SplitSeq(names, nameSeparator) {
		if err := s.byName[name]; err != nil {
			matched = append(matched, err)
		}
	}
	return text, matched
}
