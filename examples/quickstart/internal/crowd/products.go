package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"github.com/cacheguard/go/cacheguard"
)

const (
	products = 10_000 // rows of the database

	// connections is how many queries the database runs at a time. Further ones queue for a connection, as with any database:
	// eight services with five connections each would come to the same.
	connections = 40
)

// product is a row of the database.
type product struct {
	ID    int
	Name  string
	Cents int // the price
}

// database is a table of products in a file of bbolt, which compiles in a second. It counts its queries, and takes its time for each.
type database struct {
	bolt      *bbolt.DB
	folder    string
	pool      chan struct{} // has an element for each query that runs
	queryTime time.Duration
	asked     atomic.Int64
}

var bucketName = []byte("products")

// openDatabase fills a new database in a temporary folder. It does not wait for the disk: the database does not outlive the program.
func openDatabase(queryTime time.Duration) (*database, error) {
	folder, err := os.MkdirTemp("", "cacheguard-example-")
	if err != nil {
		return nil, err
	}
	d := &database{folder: folder, pool: make(chan struct{}, connections), queryTime: queryTime}
	d.bolt, err = bbolt.Open(filepath.Join(folder, "shop.db"), 0o600, &bbolt.Options{NoSync: true})
	if err == nil {
		err = d.bolt.Update(fill)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make the database: %w", err), d.close())
	}
	return d, nil
}

func fill(tx *bbolt.Tx) error {
	bucket, err := tx.CreateBucket(bucketName)
	if err != nil {
		return err
	}
	for id := 1; id <= products; id++ {
		row, err := json.Marshal(product{ID: id, Name: fmt.Sprint("Product ", id), Cents: 100 + id*37%9900})
		if err == nil {
			err = bucket.Put(row64(id), row)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// row64 is where a row is.
func row64(id int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(id)) }

// Product reads a product. It returns cacheguard.ErrNotFound if there is none.
func (d *database) Product(ctx context.Context, id int) (p product, err error) {
	d.asked.Add(1)
	select {
	case d.pool <- struct{}{}:
	case <-ctx.Done():
		return p, fmt.Errorf("product %d: %w", id, context.Cause(ctx))
	}
	defer func() { <-d.pool }()

	select { // this is what makes the query slow: it keeps its connection busy meanwhile
	case <-time.After(d.queryTime):
	case <-ctx.Done():
		return p, fmt.Errorf("product %d: %w", id, context.Cause(ctx))
	}
	err = d.bolt.View(func(tx *bbolt.Tx) error {
		row := tx.Bucket(bucketName).Get(row64(id))
		if row == nil {
			return cacheguard.ErrNotFound
		}
		return json.Unmarshal(row, &p)
	})
	return p, err
}

// queries returns how many were asked so far.
func (d *database) queries() int64 { return d.asked.Load() }

func (d *database) close() (err error) {
	if d.bolt != nil {
		err = d.bolt.Close()
	}
	return errors.Join(err, os.RemoveAll(d.folder))
}
