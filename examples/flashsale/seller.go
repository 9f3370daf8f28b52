package main

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

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
