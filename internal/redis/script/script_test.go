package script_test

import (
	"context"
	"crypto/rand"
	"math"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// unknown makes a script that no server knows yet. It returns its first key and argument.
func unknown() *script.Script {
	return script.New("return {KEYS[1], ARGV[1]} -- " + rand.Text())
}

// failing makes one that no server knows, and that fails.
func failing() *script.Script {
	return script.New("return redis.error_reply('OUCH') -- " + rand.Text())
}

func call(s *script.Script, key string, args ...any) *script.Call {
	return &script.Call{Script: s, Keys: []string{key}, Args: args}
}

func replies(t *testing.T, cmd *redis.Cmd, want ...string) {
	t.Helper()
	if got, err := cmd.StringSlice(); err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

func expectSent(t *testing.T, p *redistest.Proxy, bySHA, bySource int) {
	t.Helper()
	if n := p.Commands(); n["evalsha"] != bySHA || n["eval"] != bySource {
		t.Errorf("%d EVALSHA and %d EVAL, want %d and %d", n["evalsha"], n["eval"], bySHA, bySource)
	}
}

func TestRunSendsTheSourceOnlyToAServerThatDoesNotKnowTheScript(t *testing.T) {
	t.Parallel()
	p := redistest.StartProxy(t, shared.Addr())
	rdb := p.Client(t)
	c := call(unknown(), "k", "v")
	replies(t, c.Run(t.Context(), rdb), "k", "v")
	expectSent(t, p, 1, 1)
	replies(t, c.Run(t.Context(), rdb), "k", "v")
	expectSent(t, p, 2, 1)
}

func TestACommandTakesThePlaceOfAScript(t *testing.T) {
	t.Parallel()
	rdb := shared.Client(t)
	key := rand.Text()
	set := call(script.Command("set"), key, "v")
	expect.Returns(t, "OK", nil)(set.Run(t.Context(), rdb).Text())
	exists := &script.Call{Script: script.Command("exists"), Keys: []string{key, key + "?", key}}
	cmds := script.RunAll(t.Context(), rdb, []*script.Call{exists, call(unknown(), "k", "v")})
	expect.Returns(t, 2, nil)(cmds[0].Int())
	replies(t, cmds[1], "k", "v")
}

func TestRunWorksWhenTheServerHasForgottenTheScript(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client(t)
	c := call(unknown(), "k", "v")
	replies(t, c.Run(t.Context(), rdb), "k", "v")
	expect.Must(t, rdb.ScriptFlush(t.Context()).Err())
	replies(t, c.Run(t.Context(), rdb), "k", "v")
	s.Restart()
	replies(t, c.Run(t.Context(), s.Client(t)), "k", "v")
}

func TestKeysAndArgumentsMayHoldAnyBytes(t *testing.T) {
	t.Parallel()
	odd := "\x00\xff\r\n$1"
	c := call(unknown(), odd, []byte(odd))
	replies(t, c.Run(t.Context(), shared.Client(t)), odd, odd)
}

func TestCallMayHaveManyKeysAndNoArguments(t *testing.T) {
	t.Parallel()
	c := &script.Call{Script: script.New("return #KEYS * 100 + #ARGV"), Keys: []string{"a", "b", "c"}}
	expect.Returns(t, 300, nil)(c.Run(t.Context(), shared.Client(t)).Int())
}

func TestErrorThatIsNotNoscriptIsNoReasonToSendTheSource(t *testing.T) {
	t.Parallel()
	p := redistest.StartProxy(t, shared.Addr())
	rdb := p.Client(t)
	fails := call(failing(), "k")
	_ = fails.Run(t.Context(), shared.Client(t)) // makes it known
	if err := fails.Run(t.Context(), rdb).Err(); !redis.HasErrorPrefix(err, "OUCH") {
		t.Errorf("Run: %v", err)
	}
	if err := script.RunAll(t.Context(), rdb, []*script.Call{fails})[0].Err(); !redis.HasErrorPrefix(err, "OUCH") {
		t.Errorf("RunAll: %v", err)
	}
	expectSent(t, p, 2, 0)
}

func TestScriptThatFailsAfterTheFallbackKeepsItsError(t *testing.T) {
	t.Parallel()
	c := call(failing(), "k")
	if err := c.Run(t.Context(), shared.Client(t)).Err(); !redis.HasErrorPrefix(err, "OUCH") {
		t.Errorf("%v", err)
	}
}

func TestPipelineSendsTheSourcesThatAreUnknownAndKeepsTheOrder(t *testing.T) {
	t.Parallel()
	p := redistest.StartProxy(t, shared.Addr())
	known, news, other := unknown(), unknown(), unknown()
	replies(t, call(known, "k", "v").Run(t.Context(), shared.Client(t)), "k", "v")
	fails := failing()
	cmds := script.RunAll(t.Context(), p.Client(t), []*script.Call{
		call(known, "0", "a"), call(news, "1", "b"), call(fails, "2"), call(known, "3", "c"), call(other, "4", "d"),
		call(news, "5", "e"),
	})
	replies(t, cmds[0], "0", "a")
	replies(t, cmds[1], "1", "b")
	if err := cmds[2].Err(); !redis.HasErrorPrefix(err, "OUCH") {
		t.Errorf("the script that fails: %v", err)
	}
	replies(t, cmds[3], "3", "c")
	replies(t, cmds[4], "4", "d")
	replies(t, cmds[5], "5", "e")
	expectSent(t, p, 6, 4)
}

func TestPipelineOfKnownScriptsIsOneRoundTrip(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client(t)
	known := unknown()
	var calls []*script.Call
	for i := range 20 {
		calls = append(calls, call(known, strconv.Itoa(i), "v"))
	}
	script.RunAll(t.Context(), rdb, calls)
	script.RunAll(t.Context(), rdb, calls) // go-redis has all the connections it wants
	before := s.Reads()
	for i, cmd := range script.RunAll(t.Context(), rdb, calls) {
		replies(t, cmd, strconv.Itoa(i), "v")
	}
	expect.Equal(t, "round trips", s.Reads()-before, 1)
}

func TestPipelineThatNeverArrivesIsAnErrorOfEachCommand(t *testing.T) {
	t.Parallel()
	p := redistest.StartProxy(t, shared.Addr())
	p.Refuse(true)
	rdb := p.Client(t, func(o *redis.Options) { o.MaxRetries = -1 })
	s := unknown()
	for i, cmd := range script.RunAll(t.Context(), rdb, []*script.Call{call(s, "a", 1), call(s, "b", 2)}) {
		if cmd.Err() == nil {
			t.Errorf("command %d has no error", i)
		}
	}
}

func TestSecondRoundMayFailByItself(t *testing.T) {
	t.Parallel()
	p := redistest.StartProxy(t, shared.Addr())
	p.On(redistest.Command("eval"), redistest.CutBefore)
	rdb := p.Client(t, func(o *redis.Options) { o.MaxRetries = -1 })
	known, news := unknown(), unknown()
	replies(t, call(known, "k", "v").Run(t.Context(), shared.Client(t)), "k", "v")
	cmds := script.RunAll(t.Context(), rdb, []*script.Call{call(known, "a", "1"), call(news, "b", "2")})
	replies(t, cmds[0], "a", "1")
	if err := cmds[1].Err(); err == nil || redis.HasErrorPrefix(err, "NOSCRIPT") {
		t.Errorf("error = %v, want that of the connection", err)
	}
}

func TestNothingToRunIsNothingToSend(t *testing.T) {
	t.Parallel()
	p := redistest.StartProxy(t, shared.Addr())
	expect.Equal(t, "replies", len(script.RunAll(t.Context(), p.Client(t), nil)), 0)
	expect.Equal(t, "commands", len(p.Commands()), 0)
}

func TestPipelineCrossesTheSlotsOfACluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 0)
	rdb := c.Client(t)
	s := unknown()
	var calls []*script.Call
	for i := range 60 {
		calls = append(calls, call(s, strconv.Itoa(i), "v"))
	}
	replies(t, calls[0].Run(t.Context(), rdb), "0", "v") // one node knows it now, the others do not
	for i, cmd := range script.RunAll(t.Context(), rdb, calls) {
		replies(t, cmd, strconv.Itoa(i), "v")
	}
	for i := range 3 {
		if n := c.Node(i).Commands(); n["evalsha"] == 0 || n["eval"] == 0 {
			t.Errorf("node %d ran %d EVALSHA and %d EVAL, want some of both", i, n["evalsha"], n["eval"])
		}
	}
}

func TestRunWithAnEndedContextReturnsItsError(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	expect.Fails(t, call(unknown(), "k", "v").Run(ctx, shared.Client(t)).Err())
}

func TestNumbersThatNobodyMeansAreDurationsAllTheSame(t *testing.T) {
	t.Parallel()
	for millis, want := range map[int64]time.Duration{0: 0, 7: 7 * time.Millisecond, -7: -7 * time.Millisecond} {
		expect.Equal(t, "milliseconds", script.Duration(millis), want)
	}
	for _, millis := range []int64{1e13, 1e17, math.MaxInt64} { // multiplied as they are, some of these are in the past
		if much, little := script.Duration(millis), script.Duration(-millis); much+time.Hour < much || little-time.Hour > little || much < 0 || little > 0 {
			t.Errorf("%d ms are %v, and %d are %v", millis, much, -millis, little)
		}
	}
}

// shared is for the tests that neither count nor break anything in the server itself.
var shared *redistest.Server

func TestMain(m *testing.M) { redistest.Main(m, &shared) }
