package lifecycle

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

var errEnd = errors.New("the end")

func TestCloseEndsCallsLeasesAndTasksInThisOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var story []string
		tell := func(what string) {
			mu.Lock()
			defer mu.Unlock()
			story = append(story, what)
		}
		f := NewLender(func(l string, cause error) { tell(l + " is aborted: " + cause.Error()) })
		if !f.Begin() {
			t.Fatal("it does not begin")
		}
		task := make(chan struct{})
		f.Go(func() { <-task; tell("task") })
		go func() {
			<-f.Ending.Done()
			tell("call: " + context.Cause(f.Ending).Error())
			f.Add("late lease", func() {})
			f.Add("removed", func() {})
			f.Remove("removed")
			f.Done()
		}()
		closed := make(chan struct{})
		go func() {
			f.Close(errEnd)
			close(closed)
		}()
		synctest.Wait()
		if f.Begin() {
			t.Error("a call begins after the end")
		}
		close(task)
		<-closed
		f.Close(errEnd)
		if want := []string{"call: the end", "late lease is aborted: the end", "task"}; !slices.Equal(story, want) {
			t.Errorf("%q, want %q", story, want)
		}
	})
}

func TestLeasesAreThoseThatWereAddedAndNotRemoved(t *testing.T) {
	t.Parallel()
	f := NewLender(func(int, error) {})
	for i := range 3 {
		begun := false
		f.Add(i, func() { begun = true })
		if !begun {
			t.Error("a lease was added and did not begin")
		}
	}
	f.Remove(1)
	held := f.Held()
	slices.Sort(held)
	if !slices.Equal(held, []int{0, 2}) {
		t.Errorf("%v are held", held)
	}
	f.Close(errEnd)
}
