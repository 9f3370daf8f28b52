package main

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/examples/internal/backends"
	"github.com/cacheguard/go/examples/internal/backends/sqldb"
	"github.com/cacheguard/go/examples/internal/program"
)

// instances of the shop share the database and Redis, and nothing else.
const instances = 3

// stage is where the sales take place.
type stage struct {
	redis *backends.RedisServer
	db    *sqldb.DB
	settings
}

// result is what came of a sale.
type result struct {
	way
	*answers
	stock, users      int
	sold, left, twice int
	took              time.Duration
	commands          int64
}

// oversold is how many orders there are for which nothing was taken from the stock.
func (r result) oversold() int { return max(0, r.sold-(r.stock-r.left)) }

// right reports whether everything was sold that could be, once to each user. Requests that failed may have left something.
func (r result) right() bool {
	all := r.sold == min(r.stock, r.users) && r.left == r.stock-r.sold
	return r.oversold() == 0 && r.twice == 0 && (all || r.failed > 0)
}

// sell opens the shop, lets the crowd in, and counts.
func (st stage) sell(ctx context.Context, w way) (r result, err error) {
	orders, err := openOrders(ctx, st.db)
	if err != nil {
		return r, err
	}
	prefix := "flashsale-" + strings.ToLower(rand.Text()[:10]) // a real Redis may have other users
	defer func() {
		background := context.WithoutCancel(ctx)
		err = errors.Join(err, st.db.Drop(background), st.redis.Delete(background, prefix+":"))
	}()
	r = result{way: w, stock: st.stock, users: st.clients * st.each}
	var sent backends.Commands
	o := opening{prefix: prefix, pause: func(context.Context) {}}
	if st.wrong {
		o.lease, o.pause = lease, st.stumbling()
	}
	var shops []*instance
	for range instances {
		o.rdb = st.redis.NewCountedClient(&sent)
		i, err := startInstance(ctx, w, o, orders)
		if err != nil {
			return r, errors.Join(err, o.rdb.Close())
		}
		defer func() { err = errors.Join(err, i.stop()) }()
		shops = append(shops, i)
	}
	if err := shops[0].seller.Put(ctx, st.stock); err != nil {
		return r, err
	}
	before, start := sent.Sent(), time.Now()
	if r.answers, err = crowd(ctx, shops, st.clients, r.users); err != nil {
		return r, err
	}
	r.took, r.commands = time.Since(start), sent.Sent()-before
	if r.sold, r.twice, err = orders.count(ctx); err != nil {
		return r, err
	}
	r.left, err = shops[0].seller.Left(ctx)
	return r, err
}

const (
	lease    = 200 * time.Millisecond // of the locks when the wrong ways are shown
	stumble  = 300 * time.Millisecond // longer than the lease
	stumbles = 8                      // in a sale, or so
)

// stumbling takes longer than the lease now and then.
func (st stage) stumbling() func(context.Context) {
	every := int64(max(2, st.clients*st.each/stumbles))
	var sold atomic.Int64
	return func(ctx context.Context) {
		if sold.Add(1)%every == every/2 {
			program.Pause(ctx, stumble)
		}
	}
}

// Why there is no order.
var (
	errSoldOut = errors.New("sold out")
	errAlready = errors.New("one order per user")
)

// A seller is what an instance of the shop decides with whether a user gets one of the stock.
type seller interface {
	Put(ctx context.Context, units int) error        // into the stock, before the sale
	Sell(ctx context.Context, user int) error        // errSoldOut, errAlready, or what Redis said
	Left(ctx context.Context) (units int, err error) // after the sale
	Close() error
}

// opening is what a seller needs. Everything that it keeps in Redis begins with the prefix.
type opening struct {
	rdb    *redis.Client
	prefix string
	lease  time.Duration // of a lock that is not to have its usual one; 0: the usual one
	pause  func(context.Context)
}

// A way is a way to sell.
type way struct {
	name  string
	open  func(opening) (seller, error)
	wrong bool
}

// rightWays sell what there is, once to each user.
var rightWays = []way{
	{"mutex", openMutex, false},
	{"mutex, fair", openFairMutex, false},
	{"compare-and-swap", openSwapping, false},
	{"segments", openSegments, false},
}

// wrongWays do not, but for the last, which is here to compare with.
var wrongWays = []way{
	{"no lock", openUnlocked, true},
	{"sync.Mutex in each instance", openInProcess, true},
	{"SET NX, DEL without token check", openBlindDelete, true},
	{"SET NX, lease shorter than work", openShortLease, true},
	{"mutex, of the same lease", openMutex, false},
}
