package cacheguard

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
)

// needy is what the text of a setting says when it does nothing without another.
var needy = regexp.MustCompile(`\b(it|It)\s+needs\b`)

// A setting that is ignored is a mistake that nobody sees.
func TestWhatNeedsAnotherSettingIsRefusedWithoutIt(t *testing.T) {
	t.Parallel()
	g := newFleet(t, standalone(t), 1, Config{RedisTimeout: bearing}).guards[0]
	load := func(context.Context, int) (int, error) { return 1, nil }
	refusals := map[string]error{}
	for field, test := range map[string]struct {
		cfg  CacheConfig[int, int]
		need string
	}{
		"CacheConfig.Patience": {CacheConfig[int, int]{Patience: time.Second}, "StaleFor"},
	} {
		test.cfg.Name, test.cfg.Load = "thing", load
		_, err := NewCache(g, test.cfg)
		if err == nil || !strings.Contains(err.Error(), field) || !strings.Contains(err.Error(), test.need) {
			t.Errorf("%s without %s: %v", field, test.need, err)
		}
		refusals[field] = err
	}
	expect.Equal(t, "settings that need another, by their texts", strings.Join(needySettings(t, ".."), " "), strings.Join(slices.Sorted(maps.Keys(refusals)), " "))

	_, err := NewCache(g, CacheConfig[int, int]{Name: "own", Load: load, Patience: time.Second, StaleFor: time.Minute})
	expect.Equal(t, "with a StaleFor of its own", err, nil)
	_, err = NewCache(g, CacheConfig[int, int]{Name: "off", Load: load, Patience: -1})
	expect.Equal(t, "without Patience", err, nil)
	stale := newFleet(t, standalone(t), 1, Config{RedisTimeout: bearing, StaleFor: time.Minute}).guards[0]
	_, err = NewCache(stale, CacheConfig[int, int]{Name: "guards", Load: load, Patience: time.Second})
	expect.Equal(t, "with the Guard's StaleFor", err, nil)
	_, err = NewCache(stale, CacheConfig[int, int]{Name: "off", Load: load, Patience: time.Second, StaleFor: -1})
	expect.Equal(t, "switched off", err != nil, true)
}

// needySettings are the fields of each exported struct whose name ends with Config below the folder, by what their comments say.
func needySettings(t *testing.T, root string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && (d.Name() == "testdata" || d.Name() != ".." && strings.HasPrefix(d.Name(), ".")) {
			return fs.SkipDir
		}
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || !spec.Name.IsExported() || !strings.HasSuffix(spec.Name.Name, "Config") {
				return true
			}
			fields, ok := spec.Type.(*ast.StructType)
			for i := 0; ok && i < len(fields.Fields.List); i++ {
				if f := fields.Fields.List[i]; len(f.Names) > 0 && needy.MatchString(f.Doc.Text()) {
					found = append(found, spec.Name.Name+"."+f.Names[0].Name)
				}
			}
			return true
		})
		return nil
	})
	expect.Equal(t, "error", err, nil)
	slices.Sort(found)
	return found
}
