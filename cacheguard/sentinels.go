package cacheguard

import (
	"errors"
	"maps"
	"slices"
	"strings"
)

// sentinels are the errors of CacheConfig.Errors. A failure travels as a text. The names of the sentinels that it matches
// precede it: a NUL, the names with a unit separator between them, and another NUL. A text that itself begins with a NUL
// gets both NULs and no name.
type sentinels struct {
	names  []string // in order
	byName map[string]error
}

const (
	nameMark      = "\x00"
	nameSeparator = "\x1f"
	maxNameLen    = 64
	maxNames      = 8 // that one failure carries
)

func newSentinels(errs map[string]error) sentinels {
	return sentinels{names: slices.Sorted(maps.Keys(errs)), byName: maps.Clone(errs)}
}

// encode is the text of the error as it travels.
func (s *sentinels) encode(err error, text string) string {
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

// decode is the inverse: the text, and the errors that the names stand for here. Other names are left out.
func (s *sentinels) decode(travelled string) (text string, matched []error) {
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

// loadError is the error of another Guard's load.
func (p *policy) loadError(key, travelled string) *LoadError {
	text, matched := p.names.decode(travelled)
	return &LoadError{Key: key, Message: text, matched: matched}
}
