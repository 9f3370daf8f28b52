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
	often int
	do    func(w *worker, o *opened, ctx context.Context) error
}

// operations are all that the package exports, and the locks.
var operations = map[string]operation{
	"Get":                  {80, (*worker).get},
	"GetMany":              {10, (*worker).getMany},
	"Fetch":                {20, (*worker).fetch},
	"SetTTL":               {5, (*worker).getBriefly},
	"SetTags":              {20, (*worker).get},
	"NewCache":             {0, (*worker).reopen},
	"New":                  {0, (*worker).reopen},
	"Guard.Close":          {1, (*worker).reopen},
	"Guard.Invalidate":     {20, (*worker).invalidate},
	"Guard.InvalidateTags": {8, (*worker).invalidateTags},
	"Guard.InvalidateAll":  {1, (*worker).invalidateAll},
	"Guard.Update":         {12, (*worker).update},
	"Guard.UpdateMany":     {5, (*worker).updateMany},
	"Guard.Bypass":         {1, (*worker).bypass},
	"Guard.BypassFleet":    {1, (*worker).bypassFleet},
	"Guard.Inspect":        {5, (*worker).inspect},
	"Guard.SelfCheck":      {1, (*worker).selfCheck},
	"Guard.Stats":          {2, (*worker).stats},
	"Guard.Verify":         {1, (*worker).stats},
	"Cache.Get":            {80, (*worker).getThing},
	"Cache.GetMany":        {2, (*worker).getBulk},
	"Cache.Key":            {1, (*worker).invalidateThing},
	"Cache.Changes":        {1, (*worker).invalidateThing},
	"Cache.Stats":          {1, (*worker).stats},
	"Cache.Invalidate":     {8, (*worker).invalidateThing},
	"Cache.InvalidateAll":  {1, (*worker).invalidateKind},
	"Cache.Update":         {6, (*worker).updateThing},
	"Cache.Put":            {12, (*worker).put},
	"a block":              {2, (*worker).invalidateBlock},
	"a quiet Get":          {60, (*worker).getQuiet},
	"a birth":              {6, (*worker).bear},
	"a thing's absence":    {20, (*worker).getBirth},
	"a loader that fails":  {5, (*worker).getFaulty},
	"a lock":               {10, (*worker).lock},
	"a swap":               {10, (*worker).swap},
}

var names = slices.Sorted(maps.Keys(operations))

// notDone are exported, and nothing to do with a cache.
var notDone = []string{"Guard.Observed"} // for package admin

// Whoever adds an operation to the package adds it to the chaos.
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

// exported is the name of an exported function, or method of a Guard or Cache.
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
	if name := of.(*ast.Ident).Name; name == "Guard" || name == "Cache" {
		return name + "." + f.Name.Name
	}
	return ""
}
