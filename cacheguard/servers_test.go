package cacheguard

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cas"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/mutex"
	"github.com/cacheguard/go/rwlock"
	"github.com/cacheguard/go/segment"
	"github.com/cacheguard/go/semaphore"
)

func onServerless(t *testing.T) arena {
	s := redistest.StartServerless(t)
	return arena{
		patience: time.Minute, // each script is looked at
		client:   func(tb testing.TB) client { return s.Client(tb) },
		around:   func(tb testing.TB) client { return s.Around(tb) },
	}
}

func TestServerlessWaitersAreWoken(t *testing.T) {
	t.Parallel()
	f := newFleet(t, onServerless(t), 2, Config{LeaseTTL: time.Hour, WaitTimeout: time.Hour}).listening()
	f.wakesAWaiter()
	mustInvalidate(t, f.guards[0], "k")
	f.wakesAReader()
}

func TestServerlessSelfCheck(t *testing.T) {
	t.Parallel()
	f := newFleet(t, onServerless(t), 1, Config{})
	expect.Equal(t, "error", f.guards[0].SelfCheck(redistest.Patiently(t)), nil)
}

// Nothing vouches for a notice that is published by the process: the echo's script is refused.
func TestServerlessTierIsNotUsed(t *testing.T) {
	t.Parallel()
	f := newFleet(t, onServerless(t), 2, Config{Local: LocalConfig{MaxEntries: 10}})
	for i := range 2 {
		f.guards[i].inbox.Start()
		redistest.Await(t, "an inbox is subscribed", func() bool { return f.guards[i].inbox.Address() != "" })
	}
	mustGet(t, f.guards[0], "k", returns("old"))
	f.stored()
	for range 20 {
		_, how, err := get(t.Context(), f.guards[1], "k", unwanted[string](t))
		expect.Equal(t, "error", err, nil)
		expect.Equal(t, "how", how, Hit)
	}
	mustInvalidate(t, f.guards[0], "k")
	expect.Equal(t, "value", mustGet(t, f.guards[1], "k", returns("new")), "new")
}

func TestServerlessTierWithoutMaxLagHearsOfInvalidations(t *testing.T) {
	t.Parallel()
	f := newFleet(t, onServerless(t), 2, Config{Local: LocalConfig{MaxEntries: 10, MaxLag: off, TTL: time.Hour}, TTL: time.Hour}).listening()
	f.keptBy(0, "k", "old")
	mustInvalidate(t, f.guards[1], "k")
	redistest.Await(t, "it is heard of", func() bool { return mustGet(t, f.guards[0], "k", returns("new")) == "new" })
}

// WAIT is not to be had there.
func TestServerlessReplicasAreAnError(t *testing.T) {
	t.Parallel()
	f := newFleet(t, onServerless(t), 1, Config{Replicas: 1})
	for name, err := range map[string]error{"Invalidate": f.guards[0].Invalidate(t.Context(), "k"), "SelfCheck": f.guards[0].SelfCheck(redistest.Patiently(t))} {
		expect.Equal(t, name, strings.Contains(fmt.Sprint(err), "unknown command"), true)
	}
}

// A request may have 1,999 arguments in this arena, 3,999 elsewhere.
func TestServerlessManyKeysAreManyRequests(t *testing.T) {
	t.Parallel()
	f := newFleet(t, onServerless(t), 1, Config{MaxLoads: off})
	keys := make([]string, expect.Samples(1100, 2100)) // more than a request may have
	for i := range keys {
		keys[i] = fmt.Sprint("k", i)
	}
	all := func(ctx context.Context, missing []string) (map[string]string, error) {
		found := make(map[string]string)
		for _, key := range missing {
			found[key] = "v"
		}
		return found, nil
	}
	found, err := GetMany(t.Context(), f.guards[0], keys, all)
	expect.Equal(t, "error", err, nil)
	expect.Equal(t, "found", len(found), len(keys))
	expect.Equal(t, "invalidated", f.guards[0].Invalidate(t.Context(), keys...), nil)
	expect.Equal(t, "tags", f.guards[0].InvalidateTags(t.Context(), keys...), nil)
	expect.Equal(t, "failures of Redis", f.events.redisErrors.Load(), 0)
}

// These tests are all there is of a Ring, as docs/production.md says.

func newRing(t *testing.T, addrs map[string]string) *redis.Ring {
	t.Helper()
	ring := redis.NewRing(&redis.RingOptions{Addrs: addrs})
	t.Cleanup(func() { _ = ring.Close() })
	return ring
}

// onRing is the arena of a Ring of two.
func onRing(t *testing.T) arena {
	addrs := map[string]string{"a": redistest.Start(t).Addr(), "b": redistest.Start(t).Addr()}
	return arena{client: func(testing.TB) client { return newRing(t, addrs) }}
}

// ringClient is a Ring with the user's own methods.
type ringClient struct{ *redis.Ring }

func TestWhatNeedsOnePlaceRefusesARing(t *testing.T) {
	t.Parallel()
	ring := newRing(t, map[string]string{"a": shared.Addr()})
	for what, refusal := range map[string]error{
		"mutex":         expect.Err(mutex.New(ring, mutex.Config{Prefix: "test"})),
		"mutex, within": expect.Err(mutex.New(ringClient{ring}, mutex.Config{Prefix: "test"})),
		"Quorum":        expect.Err(mutex.NewQuorum([]mutex.Redis{ring, shared.Client(t), shared.Client(t)}, mutex.Config{Prefix: "test"})),
		"rwlock":        expect.Err(rwlock.New(ring, rwlock.Config{Prefix: "test"})),
		"semaphore":     expect.Err(semaphore.New(ring, semaphore.Config{Prefix: "test", Permits: 1})),
		"cas":           expect.Err(cas.New(ring, cas.Config{Prefix: "test"})),
		"segment":       expect.Err(segment.New(ring, segment.Config{Prefix: "test"})),
		"Local":         expect.Err(New(ring, withLocal)),
		"Limiter":       expect.Err(semaphore.NewLimiter(ring, "loads", semaphore.Config{Prefix: "test", Permits: 1})),
	} {
		expect.Equal(t, what, strings.Contains(fmt.Sprint(refusal), "Ring"), true)
	}
}

func TestOnARingWhatOneShardDoesWorksAndAWriteNeedsAnotherLock(t *testing.T) {
	t.Parallel()
	a := onRing(t)
	for _, name := range []string{
		"ManyCallersOnManyInstancesShareOneLoad", "InvalidateStopsARunningLoadFromStoring", "TagsReachAllEntriesThatHaveThem", "CloseLeavesNothingBehind",
	} {
		for _, p := range promises {
			if p.name == name {
				expect.Beside(t, name, func(t *testing.T) {
					p.test(t, a)
				})
			}
		}
	}
	locks, err := mutex.New(shared.Client(t), mutex.Config{Prefix: t.Name(), RedisTimeout: bearing})
	expect.Equal(t, "error", err, nil)
	defer func() { _ = locks.Close() }() // always nil
	for _, cfg := range []Config{{UpdateAnyway: true}, {WriteLock: locks}} {
		said, text := logged()
		cfg.Logger = said.Logger
		f := newFleet(t, a, 1, cfg)
		expect.Equal(t, "SelfCheck", f.guards[0].SelfCheck(redistest.Patiently(t)), nil)
		expect.Equal(t, "SelfCheck says what is refused", strings.Contains(text(), "Update, UpdateMany and Put are refused"), cfg.WriteLock == nil)
		db := newRow("old")
		c := rows(t, f, db)[0]
		for name, write := range map[string]func() error{
			"Update": func() error { return c.Update(context.Background(), 1, db.write("new")) },
			"Put":    func() error { return c.Put(context.Background(), 1, db.saves("new")) },
		} {
			db.value.Store("old")
			mustInvalidate(t, f.guards[0], rowKey)
			err := write()
			wrote := cfg.WriteLock != nil
			if wrote != (err == nil) || !wrote && !strings.Contains(err.Error(), "Ring") {
				t.Errorf("%s: %v", name, err)
			}
			expect.Equal(t, name+", written", Written(err), wrote)
			v, err := c.Get(context.Background(), 1)
			expect.Equal(t, "error", err, nil)
			expect.Equal(t, name+", changed", v == "new", wrote)
		}
	}
}

// dialTLS is a client of a Redis whose certificate was signed by the authority in caFile.
func dialTLS(addr, user, password, caFile string) (*redis.Client, error) {
	ca, err := os.ReadFile(caFile) // of a managed Redis; without RootCAs, those of the system count
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, errors.New("no certificate in " + caFile)
	}
	return redis.NewClient(&redis.Options{
		Addr: addr, Username: user, Password: password,
		TLSConfig:     &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, // ServerName: that of Addr
		DialerRetries: 1,
	}), nil
}

func TestAGuardWorksOverTLS(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	port := redistest.FreePort(t)
	server := redistest.Start(t, "--tls-port", strconv.Itoa(port), "--tls-auth-clients", "no",
		"--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert)
	expect.ErrorIs(t, server.Client(t).Do(t.Context(), "acl", "setuser", "service", "on", ">secret", "~*", "&*", "+@all").Err(), nil)
	rdb, err := dialTLS(fmt.Sprint("127.0.0.1:", port), "service", "secret", cert)
	expect.ErrorIs(t, err, nil)
	t.Cleanup(func() { _ = rdb.Close() })
	g := newGuard(t, rdb, Config{Prefix: "shop", Local: LocalConfig{MaxEntries: 10}})
	expect.ErrorIs(t, g.SelfCheck(redistest.Patiently(t)), nil)
	value, err := Get(t.Context(), g, "k", func(context.Context) (string, error) { return "v", nil })
	expect.ErrorIs(t, err, nil)
	expect.Equal(t, "value", value, "v")
}

// certificate writes one for 127.0.0.1 that has signed itself, and its key.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	expect.ErrorIs(t, err, nil)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &secret.PublicKey, secret)
	expect.ErrorIs(t, err, nil)
	raw, err := x509.MarshalPKCS8PrivateKey(secret)
	expect.ErrorIs(t, err, nil)
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: signed}, key: {Type: "PRIVATE KEY", Bytes: raw}} {
		expect.ErrorIs(t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600), nil)
	}
	return cert, key
}
