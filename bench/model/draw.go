package model

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Drawn are the bounds of the runs that are drawn to be replayed, by model.
var Drawn = map[string][]string{
	"load":  {"-DCOPIES=2", "-DLOSSES=3"},
	"guard": {"-DINSTANCES=3", "-DGETS=1", "-DFEW=1", "-DTIMERS=0", "-DCOPIES=0", "-DLOSSES=0"},
}

// DrawAll draws so many runs of each, and writes them to the folder.
func (s *Searcher) DrawAll(ctx context.Context, to string, runs int) error {
	for name, defines := range Drawn {
		m := Model{Name: name}
		if name == "guard" {
			m.Name = "load"
		}
		for seed := range runs {
			trail, err := s.Draw(ctx, m, defines, seed)
			if err != nil {
				return err
			}
			file := filepath.Join(to, fmt.Sprintf("%s-%02d.txt", name, seed))
			if err := os.WriteFile(file, []byte(write(trail)), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// write is what steps reads.
func write(trail []Step) string {
	var text strings.Builder
	for _, step := range trail {
		fmt.Fprintf(&text, "@%s ; %s\n", step, step.Says)
		if step.State == nil {
			continue
		}
		text.WriteString("#")
		for _, name := range step.names {
			text.WriteString(" " + name + " " + step.State[name])
		}
		text.WriteString("\n")
	}
	return text.String()
}
