package plugins

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	fxlib "go.uber.org/fx"
	"go.uber.org/fx/fxevent"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/examples/plugins/fx"
	"github.com/cacheguard/go/internal/testing/expect"
)

// rows are products that need no database.
type rows struct{}

func (rows) Product(_ context.Context, id int64) (string, error) {
	return fmt.Sprint("product ", id), nil
}

// stops notes whose hooks Fx runs when it stops.
type stops struct{ of []string }

func (s *stops) LogEvent(e fxevent.Event) {
	if e, is := e.(*fxevent.OnStopExecuted); is && e.Err == nil {
		s.of = append(s.of, e.CallerName[strings.LastIndex(e.CallerName, ".")+1:])
	}
}

func TestFxClosesTheGuardAfterItsUsersAndBeforeItsClient(t *testing.T) {
	t.Parallel()
	var (
		products *cacheguard.Cache[int64, string]
		rdb      *redis.Client
		stopped  stops
		warnings strings.Builder
	)
	app := fxlib.New(fx.Module(),
		fxlib.Supply(&redis.Options{Addr: server.Addr()}, cacheguard.Config{Prefix: rand.Text()}, slog.New(slog.NewTextHandler(&warnings, nil)),
			fxlib.Annotate(rows{}, fxlib.As(new(fx.Products)))),
		fxlib.WithLogger(func() fxevent.Logger { return &stopped }),
		fxlib.Populate(&products, &rdb),
		fxlib.Invoke(func(life fxlib.Lifecycle, products *cacheguard.Cache[int64, string]) { // a server
			life.Append(fxlib.StopHook(func(ctx context.Context) error {
				_, err := products.Get(ctx, 8) // for a request that it has not answered yet
				return err
			}))
		}),
	)
	must(t, app.Start(t.Context()))
	got, err := products.Get(t.Context(), 7)
	must(t, err)
	expect.Equal(t, "product", got, "product 7")
	must(t, app.Stop(t.Context()))

	_, err = products.Get(t.Context(), 7)
	expect.ErrorIs(t, err, cacheguard.ErrClosed)
	expect.ErrorIs(t, rdb.Ping(t.Context()).Err(), redis.ErrClosed)
	expect.Equal(t, "hooks", len(stopped.of), 3)
	expect.Equal(t, "the client's", stopped.of[2], "newClient")
	expect.Equal(t, "the Guard's", stopped.of[1], "newGuard")
	expect.Equal(t, "warnings", warnings.String(), "")
}
