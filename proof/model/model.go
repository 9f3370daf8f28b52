// Package model has models of the protocols in Promela, has SPIN search all that can happen in them, and replays what it draws from them on
// the scripts and on a Guard. docs/design/model.md says which part of a model is which script.
//
// Each model is a file, for one mechanism. It says within which bounds it holds, and names its rules:
//
//	/* holds: WHAT | -DNAME=N … */                  no run breaks a promise, and nobody waits for ever
//	/* ends: WHAT | -DNAME=N … */                   every run ends
//	/* large: WHAT | -DNAME=N … */                  as holds, within bounds that take minutes
//	/* known: WHAT | -DNAME=N … */                  a run breaks a promise, and is documented as a limit
//	#define NAME N /* rule: WHAT | -DNAME=N … */    without the rule, a run within these bounds breaks a promise
package model

import (
	"embed"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
)

//go:embed *.pml *.h
var files embed.FS

// Model is what a file says about itself.
type Model struct {
	Name  string
	Holds []Bounds
	Ends  []Bounds
	Large []Bounds
	Known []Bounds
	Rules []Rule
}

// Bounds are how much of everything there is in a search.
type Bounds struct {
	Says    string
	Defines []string
}

// Rule is a rule of the protocol, and within which bounds it is missed.
type Rule struct {
	Name string
	Bounds
}

var (
	boundsLine = regexp.MustCompile(`(?m)^/\* (holds|ends|large|known): (.+) \|(.*)\*/$`)
	ruleLine   = regexp.MustCompile(`(?m)^#define ([A-Z_]+) +\d+ +/\* rule: (.+) \|(.*)\*/$`)
)

// All are the models, by name.
func All() ([]Model, error) {
	names, err := fs.Glob(files, "*.pml")
	if err != nil {
		return nil, err
	}
	all := make([]Model, 0, len(names))
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		m := parse(strings.TrimSuffix(name, ".pml"), string(text))
		if len(m.Holds) == 0 || len(m.Rules) == 0 {
			return nil, fmt.Errorf("%s says nothing that holds, or has no rules", name)
		}
		all = append(all, m)
	}
	return all, nil
}

func parse(name, text string) Model {
	m := Model{Name: name}
	for _, line := range boundsLine.FindAllStringSubmatch(text, -1) {
		b := Bounds{Says: line[2], Defines: strings.Fields(line[3])}
		switch line[1] {
		case "holds":
			m.Holds = append(m.Holds, b)
		case "ends":
			m.Ends = append(m.Ends, b)
		case "known":
			m.Known = append(m.Known, b)
		default:
			m.Large = append(m.Large, b)
		}
	}
	for _, line := range ruleLine.FindAllStringSubmatch(text, -1) {
		m.Rules = append(m.Rules, Rule{Name: line[1], Bounds: Bounds{Says: line[2], Defines: strings.Fields(line[3])}})
	}
	return m
}
