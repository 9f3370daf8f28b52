// Package failure is what instances tell each other, and remember, of loads that failed.
package failure

import (
	"encoding/base64"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cacheguard/go/internal/cache/protocol"
)

// Names are the errors of CacheConfig.Errors, and the library's own causes. A failure travels as a text. The names of
// the sentinels that it matches precede it: a NUL, the names with a unit separator between them, and another NUL. A
// text that itself begins with a NUL gets both NULs and no name.
type Names struct {
	names  []string // in order
	byName map[string]error
	most   int   // that one failure carries
	codec  Codec // nil: none
}

// Codec is CacheConfig.ErrorCodec. Its encoding travels as one of the names, behind a mark that no name has, so that an
// instance without the codec leaves it out.
type Codec interface {
	EncodeError(err error) []byte
	DecodeError(data []byte) error
}

// MaxName is how many bytes a name may have.
const MaxName = 64

const (
	nameMark      = "\x00"
	nameSeparator = "\x1f"
	ownMark       = "\x1d" // before the names of own causes: no program's has it
	maxNames      = 8      // of a program's, that one failure carries
	maxText       = 1 << 10
	codeMark      = "\x1e"
	maxCode       = 512 // bytes
)

// NewNames returns the names of the library's own causes, which all instances know, and of a program's errors, and the
// codec; nil: none.
func NewNames(own, errs map[string]error, codec Codec) Names {
	all := make(map[string]error, len(own)+len(errs))
	maps.Copy(all, errs)
	for name, err := range own {
		all[ownMark+name] = err
	}
	return Names{names: slices.Sorted(maps.Keys(all)), byName: all, most: len(own) + maxNames, codec: codec}
}

// Encode is the text of the error as it travels.
func (s *Names) Encode(err error, text string) string {
	text = text[:min(len(text), maxText)]
	var matched []string
	for _, name := range s.names {
		if len(matched) < s.most && named(err, s.byName[name]) {
			matched = append(matched, name)
		}
	}
	if s.codec != nil {
		if code := s.codec.EncodeError(err); len(code) > 0 && len(code) <= maxCode {
			matched = append(matched, codeMark+base64.RawStdEncoding.EncodeToString(code))
		}
	}
	if len(matched) == 0 && !strings.HasPrefix(text, nameMark) {
		return text
	}
	return nameMark + strings.Join(matched, nameSeparator) + nameMark + text
}

// named reports whether the error travels by the name of the other one, which may say so itself.
func named(err, by error) bool {
	if by, ok := by.(interface{ Names(error) bool }); ok {
		return by.Names(err)
	}
	return errors.Is(err, by)
}

// Decode is the inverse: the text, and the errors that the names stand for here. Other names are left out.
func (s *Names) Decode(travelled string) (text string, matched []error) {
	rest, marked := strings.CutPrefix(travelled, nameMark)
	names, text, ended := strings.Cut(rest, nameMark)
	if !marked || !ended {
		return travelled, nil
	}
	for name := range strings.SplitSeq(names, nameSeparator) {
		err := s.byName[name]
		if code, coded := strings.CutPrefix(name, codeMark); coded && s.codec != nil {
			err = s.decode(code)
		}
		if err != nil {
			matched = append(matched, err)
		}
	}
	return text, matched
}

// decode returns nil for what it cannot decode. A codec that panics must not take down those who wait for the load.
func (s *Names) decode(code string) (err error) {
	defer func() {
		if recover() != nil {
			err = nil
		}
	}()
	data, err := base64.RawStdEncoding.DecodeString(code)
	if err != nil {
		return nil // it is left out
	}
	return s.codec.DecodeError(data)
}

// Memory remembers the errors of this Guard's own loads for as long as Redis may remember their text, so that
// callers here get the error itself. The zero Memory is ready.
type Memory struct {
	mu      sync.Mutex
	errs    map[string]failure // by the load's token
	sweepAt int                // how many there may be before the expired ones are dropped
}

type failure struct {
	err     error
	expires time.Time
}

// Add remembers the error of a load.
func (f *Memory) Add(token string, err error, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.errs) >= f.sweepAt {
		for t, old := range f.errs {
			if now.After(old.expires) {
				delete(f.errs, t)
			}
		}
		f.sweepAt = 2*len(f.errs) + 64
	}
	if f.errs == nil {
		f.errs = make(map[string]failure)
	}
	f.errs[token] = failure{err: err, expires: now.Add(protocol.LongestFailureMemory + time.Second)}
}

// Find returns the error of the load, nil if it was not one of ours.
func (f *Memory) Find(token string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.errs[token].err
}
