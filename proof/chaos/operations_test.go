package chaos

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// operation is something that a process does, and how often in comparison with others.
type operation struct {
	often  int
	do     func(w *worker, ctx context.Context, o *opened) error
	writes bool // and dies, if it must
}

// operations are all that the package exports, and the locks.
var operations = map[string]operation{
	"Get":                  {80, (*worker).get, false},
	"GetMany":              {10, (*worker).getMany, false},
	"Fetch":                {20, (*worker).fetch, false},
	"SetTTL":               {5, (*worker).getBriefly, false},
	"SetTags":              {20, (*worker).get, false},
	"NewCache":             {0, (*worker).reopen, false},
	"New":                  {0, (*worker).reopen, false},
	"Guard.Close":          {1, (*worker).reopen, false},
	"Guard.Invalidate":     {20, (*worker).invalidate, false},
	"Guard.InvalidateTags": {8, (*worker).invalidateTags, false},
	"Guard.InvalidateAll":  {1, (*worker).invalidateAll, false},
	"Guard.Update":         {12, (*worker).update, true},
	"Guard.UpdateMany":     {5, (*worker).updateMany, false},
	"Guard.Intend":         {8, (*worker).intend, true},
	"Intent.Also":          {1, (*worker).intend, true},
	"Intent.Done":          {1, (*worker).intend, true},
	"Intent.Context":       {1, (*worker).intend, true},
	"Also":                 {6, (*worker).updateAlso, false},
	"Written":              {1, (*worker).updateAlso, false},
	"ClassOf":              {1, (*worker).updateAlso, false},
	"Cache.Guard":          {1, (*worker).stats, false},
	"Guard.Bypass":         {1, (*worker).bypass, false},
	"Guard.BypassFleet":    {1, (*worker).bypassFleet, false},
	"Guard.Inspect":        {5, (*worker).inspect, false},
	"Guard.HasTag":         {1, (*worker).inspect, false},
	"Guard.SelfCheck":      {1, (*worker).selfCheck, false},
	"Guard.Stats":          {2, (*worker).stats, false},
	"Cache.Get":            {80, (*worker).getThing, false},
	"Cache.Peek":           {20, (*worker).peekThing, false},
	"a shut gate":          {2, (*worker).shutSome, false},
	"a Get past the gate":  {5, (*worker).getPast, false},
	"Cache.Warm":           {1, (*worker).warm, false},
	"Cache.GetMany":        {2, (*worker).getBulk, false},
	"Cache.Key":            {1, (*worker).invalidateThing, false},
	"Cache.Changes":        {1, (*worker).invalidateThing, false},
	"Cache.Stats":          {1, (*worker).stats, false},
	"Cache.Invalidate":     {8, (*worker).invalidateThing, false},
	"Cache.InvalidateAll":  {1, (*worker).invalidateKind, false},
	"Cache.Update":         {6, (*worker).updateThing, true},
	"Cache.Put":            {12, (*worker).put, true},
	"a view":               {40, (*worker).getView, false},
	"a thing and its view": {8, (*worker).invalidateViewed, false},
	"a batch":              {10, (*worker).getTogether, false},
	"thousands":            {1, (*worker).getThousands, false},
	"quiet thousands":      {1, (*worker).getThousandsQuietly, false},
	"a share of thousands": {1, (*worker).invalidateShare, false},
	"a block":              {2, (*worker).invalidateBlock, false},
	"a quiet Get":          {60, (*worker).getQuiet, false},
	"a key of two kinds":   {10, (*worker).getTwice, false},
	"a thing's intent":     {8, (*worker).intendThing, true},
	"a birth":              {6, (*worker).bear, false},
	"a thing's absence":    {20, (*worker).getBirth, false},
	"a loader that fails":  {5, (*worker).getFaulty, false},
	"KeepTags":             {1, (*worker).getPage, false},
	"a page":               {30, (*worker).getPage, false},
	"a page's end":         {8, (*worker).invalidatePage, false},
	"a lock":               {10, (*worker).lock, false},
	"a swap":               {10, (*worker).swap, false},
}

var names = slices.Sorted(maps.Keys(operations))

// named are those whose errors have names in docs/guarantees.md.
var named = []string{
	"Guard.Invalidate", "Guard.InvalidateTags", "Guard.InvalidateAll", "Guard.Update", "Guard.UpdateMany", "Guard.Intend", "Intent.Also", "Intent.Done", "Intent.Context",
	"Also", "Written", "ClassOf", "Cache.Key", "Cache.Changes", "Cache.Invalidate", "Cache.InvalidateAll", "Cache.Update", "Cache.Put", "a thing and its view", "a block", "a share of thousands",
	"a thing's intent", "a birth",
	"an error that means: not written", // a mistake
}

// notDone are exported, and nothing to do with a cache.
var notDone = []string{"Guard.Observed", "Cache.Name", "On"} // the first is for package admin; all Guards have an Observer

// An operation that is added to the package must be added to the chaos, too.
func TestEveryOperationTakesPart(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../cacheguard/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	found := 0
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, source, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			name := exported(d)
			if name == "" || slices.Contains(notDone, name) {
				continue
			}
			found++
			if _, takesPart := operations[name]; !takesPart {
				t.Errorf("%s is missing from operations", name)
			}
		}
	}
	if found < 20 {
		t.Errorf("found only %d", found)
	}
}

// exported is the name of an exported function, or method of a Guard, Cache or Intent.
func exported(d ast.Decl) string {
	f, isFunction := d.(*ast.FuncDecl)
	switch {
	case !isFunction || !f.Name.IsExported():
		return ""
	case f.Recv == nil:
		return f.Name.Name
	}
	of := f.Recv.List[0].Type
	if pointer, ok := of.(*ast.StarExpr); ok {
		of = pointer.X
	}
	switch generic := of.(type) {
	case *ast.IndexListExpr:
		of = generic.X
	case *ast.IndexExpr:
		of = generic.X
	}
	if name := of.(*ast.Ident).Name; name == "Guard" || name == "Cache" || name == "Intent" {
		return name + "." + f.Name.Name
	}
	return ""
}
