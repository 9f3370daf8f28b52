package redistest_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestProxyLetsACommandThroughAndDropsItsReply(t *testing.T) {
	t.Parallel()
	key := fresh(t)
	p := redistest.StartProxy(t, shared.Addr())
	rule := p.On(redistest.Command("SET"), redistest.DropReply)
	if err := p.Client(t, once).Set(t.Context(), key, "v", 0).Err(); !errors.Is(err, io.EOF) {
		t.Errorf("SET: %v, want EOF", err)
	}
	await(t, rule.Hit())
	if got := shared.Client(t).Get(t.Context(), key).Val(); got != "v" {
		t.Errorf("value = %q: the command did not run", got)
	}
}

func TestProxySwallowsAReplyAndAllAfterItButNoCommand(t *testing.T) {
	t.Parallel()
	key := fresh(t)
	p := redistest.StartProxy(t, shared.Addr())
	rule := p.On(redistest.Command("incr"), redistest.SwallowReply).Times(1)
	_, err := p.Client(t, hasty).Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
		pipe.Incr(t.Context(), key)
		pipe.Incr(t.Context(), key)
		return nil
	})
	if !isTimeout(err) || rule.Count() != 1 {
		t.Errorf("pipeline: %v after %d hits, want a timeout after 1", err, rule.Count())
	}
	if n, err := shared.Client(t).Get(t.Context(), key).Int(); n != 2 {
		t.Errorf("counter = %d, %v; want 2", n, err)
	}
}

func TestProxyCutsBeforeACommandButRepliesToThoseBeforeIt(t *testing.T) {
	t.Parallel()
	key := fresh(t)
	p := redistest.StartProxy(t, shared.Addr())
	rule := p.On(redistest.Command("del"), redistest.CutBefore)
	conn, err := net.Dial("tcp", p.Addr()) // as a client of go-redis fails a pipeline as a whole
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	arg := fmt.Sprintf("$%d\r\n%s\r\n", len(key), key)
	if _, err := io.WriteString(conn, "*3\r\n$3\r\nSET\r\n"+arg+"$1\r\nv\r\n*2\r\n$3\r\nDEL\r\n"+arg); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(conn); string(got) != "+OK\r\n" || err != nil {
		t.Errorf("read %q, %v; want the reply to SET and an end", got, err)
	}
	await(t, rule.Hit())
	if n := shared.Client(t).Exists(t.Context(), key).Val(); n != 1 {
		t.Error("the command reached Redis, or the one before it did not")
	}
}

func TestProxyHoldsACommandUntilRelease(t *testing.T) {
	t.Parallel()
	key := fresh(t)
	p := redistest.StartProxy(t, shared.Addr())
	rule := p.On(redistest.Command("set"), redistest.Hold)
	result := goErr(t, func() error { return p.Client(t).Set(t.Context(), key, "v", 0).Err() })
	await(t, rule.Hit())
	if n := shared.Client(t).Exists(t.Context(), key).Val(); n != 0 {
		t.Error("a held command ran")
	}
	rule.Release()
	if err := <-result; err != nil {
		t.Errorf("SET after Release: %v", err)
	}
	set(t, p.Client(t), key) // holds no more
}

func TestProxyDeliversAHeldCommandThatTheClientHasGivenUp(t *testing.T) {
	t.Parallel()
	key := fresh(t)
	p := redistest.StartProxy(t, shared.Addr())
	rule := p.On(redistest.Command("set"), redistest.Hold)
	if err := p.Client(t, hasty).Set(t.Context(), key, "late", 0).Err(); !isTimeout(err) {
		t.Errorf("SET: %v, want a timeout", err)
	}
	rule.Release()
	rdb := shared.Client(t)
	redistest.Await(t, "the late command", func() bool { return rdb.Get(t.Context(), key).Val() == "late" })
}

func TestProxyHoldsAReplyUntilRelease(t *testing.T) {
	t.Parallel()
	key := fresh(t)
	p := redistest.StartProxy(t, shared.Addr())
	rule := p.On(redistest.Command("set"), redistest.HoldReply)
	result := goErr(t, func() error { return p.Client(t).Set(t.Context(), key, "v", 0).Err() })
	await(t, rule.Hit())
	if got := shared.Client(t).Get(t.Context(), key).Val(); got != "v" {
		t.Errorf("value = %q: the command did not run", got)
	}
	if len(result) != 0 {
		t.Error("the reply was not held")
	}
	rule.Release()
	if err := <-result; err != nil {
		t.Errorf("SET after Release: %v", err)
	}
}

func TestProxyAnswersWithAnErrorInTheCommandsTurn(t *testing.T) {
	t.Parallel()
	key := fresh(t)
	p := redistest.StartProxy(t, shared.Addr())
	p.On(redistest.Command("incr"), redistest.ReplyError("READONLY no")).Times(2)
	cmds, _ := p.Client(t, once).Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
		pipe.Incr(t.Context(), key)
		pipe.Echo(t.Context(), "a")
		pipe.Incr(t.Context(), key)
		pipe.Incr(t.Context(), key)
		return nil
	})
	for _, i := range []int{0, 2} {
		if err := cmds[i].Err(); err == nil || err.Error() != "READONLY no" {
			t.Errorf("command %d: %v", i, err)
		}
	}
	if a, n := cmds[1].(*redis.StringCmd).Val(), cmds[3].(*redis.IntCmd).Val(); a != "a" || n != 1 {
		t.Errorf("ECHO = %q, INCR = %d; want a and 1", a, n)
	}
}

func TestRuleGoesToTheOldestThatHasMatchesLeft(t *testing.T) {
	t.Parallel()
	key := fresh(t)
	p := redistest.StartProxy(t, shared.Addr())
	p.On(redistest.Command("get"), redistest.ReplyError("ERR one")).Times(1)
	two := p.On(redistest.Command("get"), redistest.ReplyError("ERR two"))
	rdb := p.Client(t)
	for _, want := range []string{"ERR one", "ERR two", "ERR two"} {
		if err := rdb.Get(t.Context(), key).Err(); err == nil || err.Error() != want {
			t.Errorf("GET: %v, want %s", err, want)
		}
	}
	if two.Count() != 2 {
		t.Errorf("Count() = %d, want 2", two.Count())
	}
	two.Remove()
	if err := rdb.Get(t.Context(), key).Err(); !errors.Is(err, redis.Nil) {
		t.Errorf("after Remove: %v", err)
	}
}

func TestRuleLetsGoWhatItHoldsWhenRemoved(t *testing.T) {
	t.Parallel()
	key := fresh(t)
	p := redistest.StartProxy(t, shared.Addr())
	rule := p.On(redistest.Command("set"), redistest.Hold)
	result := goErr(t, func() error { return p.Client(t).Set(t.Context(), key, "v", 0).Err() })
	await(t, rule.Hit())
	rule.Remove()
	if err := <-result; err != nil {
		t.Error(err)
	}
}

func TestProxyEndsWithACommandStillHeld(t *testing.T) {
	t.Parallel()
	key := fresh(t)
	p := redistest.StartProxy(t, shared.Addr())
	p.On(redistest.Command("set"), redistest.Hold)
	if err := p.Client(t, hasty).Set(t.Context(), key, "v", 0).Err(); !isTimeout(err) {
		t.Errorf("SET: %v, want a timeout", err)
	}
}

func TestScriptMatchesEvalAndEvalshaOfItsSourceOnly(t *testing.T) {
	t.Parallel()
	const source = "return 'matched'"
	p := redistest.StartProxy(t, shared.Addr())
	rule := p.On(redistest.Script(source), redistest.ReplyError("ERR matched"))
	rdb := p.Client(t)
	if err := rdb.Eval(t.Context(), source, nil).Err(); err == nil {
		t.Error("EVAL was not matched")
	}
	if err := rdb.EvalSha(t.Context(), redis.NewScript(source).Hash(), nil).Err(); err == nil || rule.Count() != 2 {
		t.Errorf("EVALSHA was not matched: %v", err)
	}
	if err := rdb.Eval(t.Context(), source+" ", nil).Err(); err != nil {
		t.Errorf("another script was matched: %v", err)
	}
}

func TestRuleForAReplyWaitsForTheScriptThatRan(t *testing.T) {
	t.Parallel()
	script := redis.NewScript("return redis.call('incr', KEYS[1]) -- new to this server")
	s := redistest.Start(t)
	p := redistest.StartProxy(t, s.Addr())
	rule := p.On(redistest.Script("return redis.call('incr', KEYS[1]) -- new to this server"), redistest.DropReply).Times(1)
	if err := script.Run(t.Context(), p.Client(t, once), []string{"k"}).Err(); !errors.Is(err, io.EOF) {
		t.Errorf("script: %v, want EOF", err)
	}
	if n, _ := s.Client(t).Get(t.Context(), "k").Int(); n != 1 || rule.Count() != 1 {
		t.Errorf("the script ran %d times and was hit %d times, want once", n, rule.Count())
	}
}
