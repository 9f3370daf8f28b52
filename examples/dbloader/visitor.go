package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// store is what the service asks for. Repository and CachedRepository both are one.
type store interface {
	User(ctx context.Context, id int) (User, error)
	Product(ctx context.Context, id int) (Product, error)
	Products(ctx context.Context, ids []int) (map[int]Product, error)
	InCategory(ctx context.Context, category int) ([]int, error)
	Rename(ctx context.Context, id int, name string) error
	SetPrice(ctx context.Context, id, cents int) error
	Move(ctx context.Context, id, category int) error
}

// visits is what visitors went through.
type visits struct {
	pages  []time.Duration // how long each took
	writes int
	stale  int // reads after a write, in another instance, that did not have what was written
}

func (v *visits) add(more visits) {
	v.pages = append(v.pages, more.pages...)
	v.writes += more.writes
	v.stale += more.stale
}

// visitor looks at pages, and now and then changes a user or a product that nobody else changes. So it knows what must be
// there after its write.
type visitor struct {
	here, there store // two instances of the service
	number, of  int   // which visitor of how many: it owns the rows whose number leaves this remainder
	visits
}

func (v *visitor) visit(ctx context.Context, pages, pagesPerWrite int) error {
	popular := rand.NewZipf(rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())), 1.2, 10, products-1)
	for range pages {
		start := time.Now()
		if err := v.page(ctx, int(popular.Uint64())); err != nil {
			return err
		}
		v.pages = append(v.pages, time.Since(start))
		if rand.IntN(pagesPerWrite) > 0 {
			continue
		}
		fresh, err := v.change(ctx)
		if err != nil {
			return err
		}
		v.writes++
		if !fresh {
			v.stale++
		}
	}
	return nil
}

// page greets the user, and shows a product, or a list of them, or that a product is not there any more.
func (v *visitor) page(ctx context.Context, rank int) error {
	if _, err := v.here.User(ctx, 1+rank%users); err != nil {
		return fmt.Errorf("user: %w", err)
	}
	switch kind := rand.IntN(20); {
	case kind == 0:
		if _, err := v.here.Product(ctx, products+1+rank%10); !errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("a product that is not there: %w", err)
		}
		return nil
	case kind < 7:
		_, err := v.here.Product(ctx, 1+rank)
		return err
	}
	ids, err := v.here.InCategory(ctx, 1+rank%categories)
	if err != nil {
		return fmt.Errorf("category: %w", err)
	}
	_, err = v.here.Products(ctx, ids)
	return err
}

// change writes here, and reports whether the other instance shows it.
func (v *visitor) change(ctx context.Context) (fresh bool, err error) {
	id := v.own(products)
	switch rand.IntN(3) {
	case 0:
		return v.rename(ctx, v.own(users), fmt.Sprint("User ", rand.Uint64()))
	case 1:
		return v.reprice(ctx, id, 100+rand.IntN(9900))
	}
	return v.move(ctx, id, 1+rand.IntN(categories))
}

// own picks one of the visitor's rows.
func (v *visitor) own(rows int) int { return 1 + v.number + v.of*rand.IntN(rows/v.of) }

func (v *visitor) rename(ctx context.Context, id int, name string) (bool, error) {
	if err := v.here.Rename(ctx, id, name); err != nil {
		return false, err
	}
	u, err := v.there.User(ctx, id)
	return u.Name == name, err
}

func (v *visitor) reprice(ctx context.Context, id, cents int) (bool, error) {
	if err := v.here.SetPrice(ctx, id, cents); err != nil {
		return false, err
	}
	p, err := v.there.Product(ctx, id)
	return p.Cents == cents, err
}

func (v *visitor) move(ctx context.Context, id, category int) (bool, error) {
	before, err := v.here.Product(ctx, id)
	if err != nil {
		return false, err
	}
	if err := v.here.Move(ctx, id, category); err != nil {
		return false, err
	}
	listed, err := v.there.InCategory(ctx, category)
	if err != nil {
		return false, err
	}
	left, err := v.there.InCategory(ctx, before.Category)
	if err != nil {
		return false, err
	}
	gone := !slices.Contains(left, id) || before.Category == category
	return slices.Contains(listed, id) && gone, nil
}
