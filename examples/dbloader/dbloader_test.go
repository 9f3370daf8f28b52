package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/examples/internal/backends/sqldb"
	"github.com/cacheguard/go/internal/testing/redistest"
)

var shared *redistest.Server

func TestMain(m *testing.M) { redistest.Main(m, &shared) }

func newRepository(t *testing.T) *Repository {
	t.Helper()
	db, err := sqldb.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	r, err := openRepository(t.Context(), db, 0)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// newInstances wraps the repository twice, with a client and a Guard each.
func newInstances(t *testing.T, r *Repository) (here, there *CachedRepository) {
	t.Helper()
	prefix := rand.Text()
	open := func() *CachedRepository {
		c, err := newCachedRepository(r, shared.Client(t), cacheguard.Config{Prefix: prefix})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
		return c
	}
	return open(), open()
}

// answers are what a store says to all kinds of questions.
func answers(t *testing.T, s store) []any {
	t.Helper()
	ctx := t.Context()
	user, err1 := s.User(ctx, 7)
	_, err2 := s.User(ctx, users+1)
	product, err3 := s.Product(ctx, 42)
	_, err4 := s.Product(ctx, products+1)
	list, err5 := s.InCategory(ctx, 3)
	several, err6 := s.Products(ctx, []int{42, 43, products + 1})
	none, err7 := s.Products(ctx, nil)
	return []any{
		user, err1, errors.Is(err2, sql.ErrNoRows), product, err3, errors.Is(err4, sql.ErrNoRows), list, err5, several, err6,
		len(none), err7,
	}
}

func TestTheCacheAnswersAsTheRepositoryDoes(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	here, there := newInstances(t, r)
	want := answers(t, r)
	if want[2] != true || want[5] != true || len(want[6].([]int)) != products/categories || len(want[8].(map[int]Product)) != 2 {
		t.Fatalf("the repository says %v", want)
	}
	asked := r.Queries()
	if got := answers(t, here); !reflect.DeepEqual(got, want) {
		t.Errorf("loaded:\n%v, want\n%v", got, want)
	}
	loaded := r.Queries() - asked
	for _, s := range []store{here, there} {
		if got := answers(t, s); !reflect.DeepEqual(got, want) {
			t.Errorf("cached:\n%v, want\n%v", got, want)
		}
	}
	if n := r.Queries() - asked - loaded; n != 0 {
		t.Errorf("%d queries for what is cached, absence included", n)
	}
}

func TestProductsLoadsTheMissingOnesInOneQuery(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	here, _ := newInstances(t, r)
	if _, err := here.Product(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	got, err := here.Products(t.Context(), []int{1, 2, 3})
	if len(got) != 3 || err != nil || r.Queries() != 2 {
		t.Errorf("%d products, %v, after %d queries, want 2", len(got), err, r.Queries())
	}
}

func TestTheOtherInstanceSeesEachWrite(t *testing.T) {
	t.Parallel()
	here, there := newInstances(t, newRepository(t))
	v := visitor{here: here, there: there, of: 1}
	_, _ = answers(t, here), answers(t, there) // all is cached
	for name, change := range map[string]func() (bool, error){
		"rename":  func() (bool, error) { return v.rename(t.Context(), 7, "Seven") },
		"reprice": func() (bool, error) { return v.reprice(t.Context(), 42, 1) },
		"move":    func() (bool, error) { return v.move(t.Context(), 43, 3) },
	} {
		if fresh, err := change(); !fresh || err != nil {
			t.Errorf("%s: seen %v, %v", name, fresh, err)
		}
	}
}

// forgetful changes names without a word to the cache.
type forgetful struct{ *CachedRepository }

func (f forgetful) Rename(ctx context.Context, id int, name string) error {
	return f.Repository.Rename(ctx, id, name)
}

func TestAVisitorNoticesAnOldValue(t *testing.T) {
	t.Parallel()
	here, there := newInstances(t, newRepository(t))
	v := visitor{here: forgetful{here}, there: there, of: 1}
	if _, err := there.User(t.Context(), 7); err != nil {
		t.Fatal(err)
	}
	if fresh, err := v.rename(t.Context(), 7, "Seven"); fresh || err != nil {
		t.Errorf("seen %v, %v", fresh, err)
	}
}

func TestMovesAtOnceLeaveNoOldList(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	here, there := newInstances(t, r)
	var moving sync.WaitGroup
	for i := range 20 {
		moving.Go(func() { // owner: the test; stop: it ends by itself; joined below
			if err := []store{here, there}[i%2].Move(t.Context(), 42, 1+i%4); err != nil {
				t.Error(err)
			}
			for category := 1; category <= 4; category++ { // stores the lists between two moves
				if _, err := here.InCategory(t.Context(), category); err != nil {
					t.Error(err)
				}
			}
		})
	}
	moving.Wait()
	for category := 1; category <= 4; category++ {
		want, err1 := r.InCategory(t.Context(), category)
		got, err2 := there.InCategory(t.Context(), category)
		if err := errors.Join(err1, err2); !slices.Equal(got, want) || err != nil {
			t.Errorf("category %d: %v, %v, want %v", category, got, err, want)
		}
	}
}

func TestAWriteToARowThatIsNotThereSaysSo(t *testing.T) {
	t.Parallel()
	here, _ := newInstances(t, newRepository(t))
	for name, err := range map[string]error{
		"rename":  here.Rename(t.Context(), users+1, "Nobody"),
		"reprice": here.SetPrice(t.Context(), products+1, 1),
		"move":    here.Move(t.Context(), products+1, 1),
	} {
		if !errors.Is(err, sql.ErrNoRows) {
			t.Errorf("%s: error is %v, want %v", name, err, sql.ErrNoRows)
		}
	}
}

func TestTheProgramComparesBoth(t *testing.T) {
	t.Setenv("REDIS_URL", "redis://"+shared.Addr())
	var out, problems strings.Builder
	args := strings.Fields("-visitors 3 -pages 20 -pages-per-write 5 -query 0")
	if code := new(settings).program().Execute(t.Context(), args, &out, &problems); code != 0 {
		t.Errorf("exit code %d: %s", code, problems.String())
	}
	for _, want := range []string{"CachedRepository", "queries per page", "no write was missed"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in the output:\n%s", want, out.String())
		}
	}
}

func TestABadFlagIsNamed(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"-visitors 0", "-pages 0", "-pages-per-write 0", "-query 2s"} {
		var problems strings.Builder
		new(settings).program().Execute(t.Context(), strings.Fields(args), &problems, &problems)
		if flag := strings.Fields(args)[0]; !strings.HasPrefix(problems.String(), "dbloader: "+flag+": ") {
			t.Errorf("%q: it says %q", args, problems.String())
		}
	}
}
