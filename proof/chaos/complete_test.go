package chaos

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cacheguard/go/cacheguard"
)

// notSet are settings that take no part, and why.
var notSet = map[string]string{
	"Config.LoadTimeout": "calls would fail", "Config.FailureTTL": "calls would fail", "CacheConfig.FailureTTL": "calls would fail", "Config.UpdateTimeout": "calls would fail", "Config.FailClosed": "calls would fail",
	"Config.WaitTimeout": "a key would have two loads", "Config.UpdateAnyway": "a dead writer's write would not be seen",
	"Config.Jitter": "of TTLs", "Config.Codec": "of bytes", "Config.Compression": "of bytes", "Config.MaxValueBytes": "of bytes",
	"Config.SlowLoad": "of reports", "Config.Logger": "of reports", "Config.RedactError": "of reports", "Config.Hooks": "of reports",
	"Config.Replicas":    "TestAFailoverForgetsNothingThatAReplicaHasAcknowledged",
	"Config.WriteLock":   "TestUpdateHoldsTheWriteLockOfEachKey and those beside it",
	"CacheConfig.Jitter": "of TTLs", "CacheConfig.NegativeTTL": "as the Guard's", "CacheConfig.Codec": "of bytes", "CacheConfig.Key": "of keys", "CacheConfig.MaxLoads": "as the Guard's",
	"Config.NotFound": "of errors", "Config.ErrorCodec": "of errors", "CacheConfig.Clone": "of values",
	"CacheConfig.NotFound": "of errors", "CacheConfig.IsNotFound": "of errors", "CacheConfig.Errors": "of errors", "CacheConfig.ErrorCodec": "of errors",
}

// Whoever adds a setting adds it to the chaos, or says why not.
func TestEverySettingTakesPart(t *testing.T) {
	t.Parallel()
	set := settings(t, "guard_test.go")
	for of, config := range map[string]any{"Config.": cacheguard.Config{}, "CacheConfig.": cacheguard.CacheConfig[int, value]{}} {
		for _, field := range reflect.VisibleFields(reflect.TypeOf(config)) {
			name := of + field.Name
			if _, excused := notSet[name]; field.IsExported() && set[name] == excused {
				t.Errorf("%s: it takes part: %t, it is in notSet: %t", name, set[name], excused)
			}
		}
	}
}

// settings are the fields that a file sets in literals of Config and CacheConfig, and in the variable cfg.
func settings(t *testing.T, path string) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	set := make(map[string]bool)
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			of := n.Type
			if generic, is := of.(*ast.IndexListExpr); is {
				of = generic.X
			}
			if named, is := of.(*ast.SelectorExpr); is {
				for _, e := range n.Elts {
					set[named.Sel.Name+"."+e.(*ast.KeyValueExpr).Key.(*ast.Ident).Name] = true
				}
			}
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				if field, is := left.(*ast.SelectorExpr); is && field.X.(*ast.Ident).Name == "cfg" {
					set["Config."+field.Sel.Name] = true
				}
			}
		}
		return true
	})
	return set
}

// kept are the promises of the table in docs/guarantees.md, and those of the checker, each of which a planted mistake trips.
var kept = map[string]string{
	"one load per key; what a load returns reaches who waits": oneLoad, "never a stale fill": staleFill, "read your writes": readWrites, "many at once": many,
	"an entry belongs to its kind": kinds, "an update survives its writer": survives, "a transaction survives its process": committed,
	"a put stores only what nothing has overtaken, and is read without a load": puts, "two versions side by side": versions, "nobody pays for another": nobodyPays,
	"turned off and on again, the cache is right": turnedOn, "a loaded value reaches its callers": reaches, "what an error says": says,
	"what is pending is not served, and is sent":                                      sentAgain,
	"without Redis nothing is written unless `UpdateAnyway` is set":                   survives,
	"a local tier serves nothing that was invalidated longer ago than `Local.MaxLag`": tierDelay,
	"what a writer names later ends after what it names first":                        madeOf,
	"nothing stale while slots move":                                                  staleFill,
	"an evicted epoch makes misses":                                                   many,
}

// elsewhere are those about loaders that hang, about values that are not stored, about what an outage costs, about a failover, which may forget here, and about servers with rules
// of their own. Their own tests break them, too.
var elsewhere = []string{
	"a node that is away concerns its own keys", "writes and locks fail at once while the breaker is open", "with `Config.Replicas` a failover forgets no invalidation",
	"waiters are woken where scripts may not publish",
	"a key has one loader in an instance, also when its callers give up", "what is not stored is for those who began before it was there",
}

// Whoever makes a promise has the chaos check it.
func TestEveryPromiseOfTheDocumentationIsChecked(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n| promise | test |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := regexp.MustCompile(`(?m)^\| (.+?) \|`).FindAllStringSubmatch(table, -1)
	if len(rows) < 20 {
		t.Fatalf("found only %d promises", len(rows))
	}
	for _, row := range rows {
		if promise := row[1]; !slices.Contains(promises, kept[promise]) && !slices.Contains(elsewhere, promise) {
			t.Errorf("nothing checks %q", promise)
		}
	}
}
