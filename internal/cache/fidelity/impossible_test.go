package fidelity_test

import (
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/cache/fidelity"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/oddtypes"
)

type row struct {
	Done  chan int
	Notes []func()
	Mu    sync.Mutex `json:"-"`
}

type ring struct{ Next *ring }

type (
	failed struct {
		Next *struct{ Err error }
		Self map[string][]failed
	}
	inner      struct{ Err error }
	embedsChan struct{ Done chan int }
	union      struct{ Of oddtypes.Shape } // its UnmarshalJSON knows the types
	unions     []oddtypes.Shape            // as above
	loop       struct{ *loop }
	loops      *loops
)

func (*union) UnmarshalJSON([]byte) error  { return nil }
func (*unions) UnmarshalJSON([]byte) error { return nil }

func TestWhatJSONNeverBringsBackIsRefusedByThePathOfTheField(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		of   reflect.Type
		path string // empty: it may come back
	}{
		{reflect.TypeFor[row](), "fidelity_test.row.Done"},
		{reflect.TypeFor[[]*row](), "[]*fidelity_test.row.Done"},
		{reflect.TypeFor[struct{ Rows [2]row }](), "struct { Rows [2]fidelity_test.row }.Rows.Done"},
		{reflect.TypeFor[map[string]func()](), "map[string]func()"},
		{reflect.TypeFor[chan int](), "chan int"},
		{reflect.TypeFor[struct{ a, b int }](), "struct { a int; b int }"},
		{reflect.TypeFor[struct{ Mu sync.Mutex }](), "struct { Mu sync.Mutex }.Mu"},
		{reflect.TypeFor[oddtypes.Shape](), "oddtypes.Shape"},
		{reflect.TypeFor[[]error](), "[]error"},
		{reflect.TypeFor[struct{ Rows *row }](), ""},
		{reflect.TypeFor[struct{ sync.Mutex }](), ""},
		{reflect.TypeFor[struct{ Of oddtypes.Shape }](), "struct { Of oddtypes.Shape }.Of"},
		{reflect.TypeFor[struct{ Of *[]map[string]oddtypes.Shape }](), "struct { Of *[]map[string]oddtypes.Shape }.Of"},
		{reflect.TypeFor[[]*failed](), "[]*fidelity_test.failed.Next.Err"},
		{reflect.TypeFor[struct{ inner }](), "struct { fidelity_test.inner }.inner.Err"},
		{reflect.TypeFor[struct{ *inner }](), "struct { *fidelity_test.inner }.inner.Err"},
		{reflect.TypeFor[struct{ embedsChan }](), "struct { fidelity_test.embedsChan }.embedsChan.Done"},
		{reflect.TypeFor[struct {
			A  int
			Of oddtypes.Shape `json:"-"`
		}](), ""},
		{reflect.TypeFor[struct {
			error
			A int
		}](), ""},
		{reflect.TypeFor[struct{ By map[string]any }](), ""},
		{reflect.TypeFor[map[string]union](), ""},
		{reflect.TypeFor[struct{ All unions }](), ""},
		{reflect.TypeFor[struct {
			inner
			Err string
		}](), ""},
		{reflect.TypeFor[struct{ Loop *loop }](), ""},
		{reflect.TypeFor[loops](), ""},
		{reflect.TypeFor[struct{}](), ""},
		{reflect.TypeFor[time.Time](), ""},
		{reflect.TypeFor[oddtypes.Flawed](), ""},
		{reflect.TypeFor[any](), ""},
		{reflect.TypeFor[string](), ""},
		{reflect.TypeFor[ring](), ""},
	} {
		path, what := fidelity.Impossible(c.of)
		expect.Equal(t, c.of.String(), path, c.path)
		expect.Equal(t, c.of.String()+": it says why", what != "", c.path != "")
	}
}

type rings []rings

func TestTypesThatConsistOfThemselvesAreNoTrouble(t *testing.T) {
	t.Parallel()
	_, what := fidelity.Impossible(reflect.TypeFor[rings]())
	expect.Equal(t, "refused", what, "")
}
