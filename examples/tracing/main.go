// Tracing shows with OpenTelemetry spans which load a request waited for. Three requests, each with its own trace, ask two
// instances for one value; the waits are linked to the get that loads.
//
// It needs nothing but Go. REDIS_URL names a real Redis to use instead.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/examples/internal/backends"
	"github.com/cacheguard/go/examples/internal/program"
	"github.com/cacheguard/go/examples/internal/table"
	"github.com/cacheguard/go/otel"
)

// settings are what the flags say.
type settings struct{ query time.Duration }

func main() { new(settings).program().Main() }

func (s *settings) program() program.Program {
	return program.Program{
		Name: "tracing", About: "Tracing shows which load a request waited for, in OpenTelemetry's spans.",
		Flags: func(f *flag.FlagSet) {
			f.DurationVar(&s.query, "query", 100*time.Millisecond, "how long the load takes")
		},
		Check: func() error {
			if s.query < 0 || s.query > 10*time.Second {
				return fmt.Errorf("-query: %v is not between 0 and 10s", s.query)
			}
			return nil
		},
		Run: s.run,
	}
}

func (s *settings) run(ctx context.Context, out io.Writer) error {
	spans, err := s.trace(ctx)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "An instance is asked for a price that is not cached, and loads it, which takes %v.\n"+
		"Meanwhile that instance and another one are asked once more. Their spans, as they ended:\n\n", s.query)
	table.Write(out, rowsOf(spans))
	_, _ = fmt.Fprintln(out, "\nA wait is linked to the get that loads, in another trace and on whatever instance.")
	return nil
}

// trace makes the requests, and returns their spans.
func (s *settings) trace(ctx context.Context) (_ tracetest.SpanStubs, err error) {
	exporter := tracetest.NewInMemoryExporter() // in place of one that sends the spans to a collector
	provider := sdk.NewTracerProvider(sdk.WithSyncer(exporter))
	telemetry, err := otel.New(otel.Config{TracerProvider: provider})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, telemetry.Close()) }()
	server, err := backends.Redis(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	prefix := "tracing-" + strings.ToLower(rand.Text()[:10]) // a real Redis may have other users
	defer func() { err = errors.Join(err, server.Delete(context.WithoutCancel(ctx), prefix+":")) }()
	guards := make([]*cacheguard.Guard, 2)
	for i := range guards {
		client := server.NewClient()
		defer client.Close()
		guards[i], err = cacheguard.New(client, cacheguard.Config{Prefix: prefix, RedisTimeout: backends.Patience, Hooks: telemetry.Guard("prices"), Observers: []cacheguard.Observer{telemetry.Observer("prices")}})
		if err != nil {
			return nil, err
		}
		defer guards[i].Close()
	}
	err = s.requests(ctx, guards)
	for _, g := range guards {
		_ = g.Close() // always nil; ends the spans
	}
	return exporter.GetSpans(), err
}

// requests asks one instance, and while it loads both once more.
func (s *settings) requests(ctx context.Context, guards []*cacheguard.Guard) error {
	loading := make(chan struct{})
	var once sync.Once
	price := func(ctx context.Context) (int, error) {
		once.Do(func() { close(loading) })
		program.Pause(ctx, s.query)
		return 1999, ctx.Err()
	}
	ask := func(g *cacheguard.Guard) error {
		_, err := cacheguard.Get(ctx, g, "price:42", price)
		return err
	}
	errs := make([]error, 3)
	var asking sync.WaitGroup
	asking.Go(func() { errs[0] = ask(guards[0]) }) // owner: requests; stop: ctx; joined below
	select {
	case <-loading:
		for i, g := range guards {
			asking.Go(func() { errs[1+i] = ask(g) }) // owner: requests; stop: ctx; joined below
		}
	case <-ctx.Done():
	}
	asking.Wait()
	return errors.Join(errors.Join(errs...), context.Cause(ctx))
}

func rowsOf(spans tracetest.SpanStubs) [][]string {
	short := func(c trace.SpanContext) string { return c.TraceID().String()[:4] + "-" + c.SpanID().String()[:4] }
	rows := [][]string{{"span", "id", "within", "outcome", "linked to"}}
	for _, s := range spans {
		within, outcome, linked := "", "", ""
		if s.Parent.IsValid() {
			within = short(s.Parent)
		}
		for _, a := range s.Attributes {
			if a.Key == "cacheguard.outcome" {
				outcome = a.Value.AsString()
			}
		}
		for _, l := range s.Links {
			linked = short(l.SpanContext)
		}
		rows = append(rows, []string{s.Name, short(s.SpanContext), within, outcome, linked})
	}
	return rows
}
