package cacheguard

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cacheguard/go/internal/cache/write"
)

// made says values of which kinds are made of values of which others, by name: as CacheConfig.MadeOf says, and as loads have shown.
type made struct {
	mu     sync.Mutex
	of     map[string]map[string]bool   // true: it is declared
	levels atomic.Pointer[write.Levels] // nil: none is made of any
}

// declare notes what a kind is made of. It refuses what would be made of itself, and returns its name.
func (m *made) declare(kind string, sources []string) (refused string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, source := range sources {
		if m.sourcesLocked(source, true, map[string]bool{source: true})[kind] {
			return source
		}
	}
	for _, source := range sources {
		m.noteLocked(kind, source, true)
	}
	return ""
}

// learn notes what a load has shown, and reports whether a Cache should have declared it.
func (m *made) learn(kind, source string) (undeclared bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of[kind][source] {
		return false
	}
	m.noteLocked(kind, source, false)
	return kind != "" && source != ""
}

func (m *made) noteLocked(kind, source string, declared bool) {
	if m.of == nil {
		m.of = make(map[string]map[string]bool)
	}
	if m.of[kind] == nil {
		m.of[kind] = make(map[string]bool)
	}
	m.of[kind][source] = declared || m.of[kind][source]
	l := &write.Levels{Of: make(map[string]int)}
	for of, sources := range m.of {
		l.Top = max(l.Top, m.levelLocked(of, l.Of))
		for name := range sources {
			m.levelLocked(name, l.Of)
		}
	}
	if l.Top > 0 {
		m.levels.Store(l)
	}
}

// sourcesLocked adds the kinds that the values of one are made of, at first hand or not.
func (m *made) sourcesLocked(kind string, declared bool, all map[string]bool) map[string]bool {
	for source, is := range m.of[kind] {
		if (is || !declared) && !all[source] {
			all[source] = true
			m.sourcesLocked(source, declared, all)
		}
	}
	return all
}

// levelLocked is one above the highest of the kind's sources. Kinds that are made of each other have the same level.
func (m *made) levelLocked(kind string, known map[string]int) int {
	level, is := known[kind]
	if is {
		return level
	}
	for source := range m.sourcesLocked(kind, false, make(map[string]bool)) {
		if !m.sourcesLocked(source, false, make(map[string]bool))[kind] {
			level = max(level, 1+m.levelLocked(source, known))
		}
	}
	known[kind] = level
	return level
}

// undeclared is Stats.Undeclared.
func (m *made) undeclared() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []string
	for kind, sources := range m.of {
		for source, declared := range sources {
			if !declared && kind != "" && source != "" {
				all = append(all, kind+" of "+source)
			}
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// isMadeOf notes that a load asks for a key of the kind.
func (l *loading) isMadeOf(g *Guard, source *kind) {
	for l != nil && (l.kind == nil || l.kind.guard != g) {
		l = l.parent
	}
	if l == nil || l.kind == source {
		return
	}
	if _, known := l.kind.sources.LoadOrStore(source, nil); !known && g.kinds.made.learn(l.kind.name, source.name) {
		g.cfg.Logger.LogAttrs(context.Background(), slog.LevelWarn,
			"cacheguard: values of a Cache are made of values of another: name it in CacheConfig.MadeOf, so that instances which only write know it",
			slog.String("kind", l.kind.name), slog.String("made_of", source.name))
	}
}
