package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/internal/run/config"
)

// maxTag is the longest tag that a Guard takes, in bytes.
const maxTag = 512

// Tables are the tables of a feed by their names.
type Tables map[string]*Table

// Table is one of them.
type Table struct {
	cdc.Table

	guards []*cacheguard.Guard // which have none of its Kinds, so they are invalidated whole
}

// Check returns what is wrong with the fields that all feeds have.
func Check(p *config.Problems, tables []cdc.Table, guards []*cacheguard.Guard, order ...cdc.Kind) Tables {
	if len(guards) == 0 {
		p.Add("Guards", "is empty")
	}
	if slices.Contains(guards, nil) {
		p.Add("Guards", "one of them is nil (did New return an error?)")
	}
	if len(tables) == 0 {
		p.Add("Tables", "is empty")
	}
	for i, kind := range order {
		switch {
		case kind == nil || kind.Guard() == nil:
			p.Add("Order", "one of its Kinds is nil")
		case !slices.Contains(guards, kind.Guard()):
			p.Add("Order", "%s is a Cache of a Guard that is not among Guards", kind.Name())
		case placeOf(order[:i], kind.Name()) >= 0:
			p.Add("Order", "%s is there twice", kind.Name())
		}
	}
	all := make(Tables)
	for i, t := range tables {
		field := fmt.Sprintf("Tables[%d]", i)
		switch {
		case t.Name == "":
			p.Add(field, "the name is empty")
		case all[t.Name] != nil:
			p.Add(field, "%s is there twice: let one Changed return the Changes for both", t.Name)
		case t.Changed == nil:
			p.Add(field, "%s: Changed is nil, or was made by Rows with a nil Cache or a nil key", t.Name)
		}
		table := &Table{Table: t, guards: slices.Clone(guards)}
		for _, kind := range t.Kinds {
			if kind == nil || kind.Guard() == nil {
				p.Add(field, "%s: one of its Kinds is nil", t.Name)
				continue
			}
			if !slices.Contains(guards, kind.Guard()) {
				p.Add(field, "%s: one of its Kinds is a Cache of a Guard that is not among Guards", t.Name)
			}
			table.guards = slices.DeleteFunc(table.guards, func(g *cacheguard.Guard) bool { return g == kind.Guard() })
		}
		all[t.Name] = table
	}
	return all
}

// CheckConn returns what is wrong with how a feed is to connect.
func CheckConn(p *config.Problems, conn string, newConn func(context.Context) (string, error)) {
	if conn == "" && newConn == nil {
		p.Add("Conn", "is empty")
	}
	if conn != "" && newConn != nil {
		p.Add("NewConn", "takes the place of Conn, so only one of them may be set")
	}
}

// Names are their names, in order.
func (t Tables) Names() []string {
	var names []string
	for name := range t {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// All are all of them.
func (t Tables) All() []*Table { return t.Of(t.Names()) }

// Of are those with the names.
func (t Tables) Of(names []string) (some []*Table) {
	for _, name := range names {
		some = append(some, t[name])
	}
	return some
}

// Changes are the keys and tags that a change makes old. The error is a *cdc.RowError.
func (t *Table) Changes(c cdc.Change) (changes cacheguard.Changes, err error) {
	defer func() {
		if why := recover(); why != nil {
			err = &cdc.RowError{Table: t.Name, Err: fmt.Errorf("its Changed panicked: %v", why)}
		}
	}()
	changes = t.Changed(c)
	if err := errors.Join(c.Old.Failed(), c.New.Failed()); err != nil {
		return changes, &cdc.RowError{Table: t.Name, Err: err}
	}
	if slices.Contains(changes.Keys, "") {
		return changes, &cdc.RowError{Table: t.Name, Err: errors.New("a key is empty")}
	}
	if i := slices.IndexFunc(changes.Tags, func(tag string) bool { return tag == "" || len(tag) > maxTag }); i >= 0 {
		return changes, &cdc.RowError{Table: t.Name, Err: fmt.Errorf("tag %.40q is empty, or longer than %d bytes", changes.Tags[i], maxTag)}
	}
	return changes, nil
}

// Near suggests the name that somebody may have meant by one that is not there.
func Near(name string, there []string) string {
	for _, other := range there {
		if strings.EqualFold(name, other) || strings.HasSuffix(other, "."+name) {
			return " (is it " + other + "?)"
		}
	}
	return ""
}
