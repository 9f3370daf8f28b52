package redistest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestChildTalksToItsParent(t *testing.T) {
	if redistest.IsChild(t) {
		fmt.Println("hello", os.Getenv("GREETED"))
		in, err := bufio.NewReader(os.Stdin).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		fmt.Print("heard ", in)
		return
	}
	t.Parallel()
	c := redistest.Child(t, t.Name(), "GREETED=you")
	expectLine(t, c, "hello you")
	c.WriteLine("word")
	expectLine(t, c, "heard word")
	if err := c.Wait(); err != nil {
		t.Errorf("Wait: %v", err)
	}
	for {
		if _, err := readLine(t, c); err != nil {
			if !errors.Is(err, io.EOF) {
				t.Errorf("after the end: %v, want EOF", err)
			}
			return
		}
	}
}

func TestChildThatFailsIsAnErrorForItsParent(t *testing.T) {
	if redistest.IsChild(t) {
		t.Fatal("as it should")
	}
	t.Parallel()
	if err := redistest.Child(t, t.Name()).Wait(); err == nil {
		t.Error("no error")
	}
}

func TestChildCanBePausedAndResumedAndKilled(t *testing.T) {
	if redistest.IsChild(t) {
		echo()
		return
	}
	t.Parallel()
	c := redistest.Child(t, t.Name())
	c.WriteLine("one")
	expectLine(t, c, "one")
	c.Pause()
	c.WriteLine("two")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if line, err := c.ReadLine(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a paused child wrote %q, %v", line, err)
	}
	c.Resume()
	expectLine(t, c, "two")
	c.Kill()
	if line, err := readLine(t, c); !errors.Is(err, io.EOF) {
		t.Errorf("a killed child wrote %q, %v", line, err)
	}
	if err := c.Wait(); err == nil {
		t.Error("Wait does not tell that the child was killed")
	}
}

func TestServerDiesWithATestBinaryThatIsKilled(t *testing.T) {
	if redistest.IsChild(t) {
		fmt.Println(redistest.Start(t).Addr())
		echo()
		return
	}
	t.Parallel()
	c := redistest.Child(t, t.Name())
	addr, err := readLine(t, c)
	if err != nil {
		t.Fatal(err)
	}
	if err := dial(addr); err != nil {
		t.Fatalf("the child's server: %v", err)
	}
	c.Kill()
	redistest.Await(t, "the server to be gone", func() bool { return dial(addr) != nil })
}

func dial(addr string) error {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	return conn.Close()
}

// echo writes what it reads until its parent is gone.
func echo() {
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		fmt.Println(in.Text())
	}
}

func readLine(t *testing.T, c *redistest.Process) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), awaitTimeout)
	defer cancel()
	return c.ReadLine(ctx)
}

func expectLine(t *testing.T, c *redistest.Process, want string) {
	t.Helper()
	if got, err := readLine(t, c); err != nil || got != want {
		t.Fatalf("the child wrote %q, %v; want %q", got, err, want)
	}
}
