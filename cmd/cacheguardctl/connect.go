package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/cacheguard/go/internal/redis/serverinfo"
)

// errUnreadable says neither what is there nor why it cannot be read: either may have a part of the password.
var errUnreadable = errors.New("REDIS_URL cannot be read: see cacheguardctl's documentation for its form; " +
	"in a user name or a password, write / as %2F, ? as %3F, # as %23, @ as %40 and % as %25")

var errNoURL = errors.New("REDIS_URL is not set: redis://host:6379, rediss://…, redis://host1:6379,host2:6379 (a cluster) or redis+sentinel://host:26379/name")

var errNoScheme = errors.New("REDIS_URL has no scheme: write redis:// before HOST:PORT, as in redis://localhost:6379, or rediss:// for TLS")

// connect returns the client that the URL is about. Errors do not repeat the URL, which may have a password.
func connect(raw string, cluster bool) (redis.UniversalClient, error) {
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok && raw != "" {
		return nil, errNoScheme
	}
	if !ok {
		return nil, errNoURL
	}
	scheme, sentinel := strings.CutSuffix(scheme, "+sentinel")
	if scheme != "redis" && scheme != "rediss" {
		return nil, errors.New("REDIS_URL: unknown scheme: redis, rediss, redis+sentinel and rediss+sentinel are known")
	}
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	hosts := hostsOf(raw)
	user := strings.TrimSuffix(rest[:end], hosts)
	first, others, _ := strings.Cut(hosts, ",")
	u, err := url.Parse(scheme + "://" + user + first + rest[end:])
	if err != nil || strings.Contains(u.Path+u.RawQuery+u.Fragment, "@") { // what looks like a path or a query began in a password
		return nil, errUnreadable
	}
	query := u.Query()
	for host := range strings.SplitSeq(others, ",") {
		if host != "" {
			query.Add("addr", host)
		}
	}
	if sentinel {
		name, db, _ := strings.Cut(strings.Trim(u.Path, "/"), "/")
		u.Path = "/" + db
		query.Set("master_name", name)
		if name == "" {
			return nil, errors.New("REDIS_URL: redis+sentinel://host:26379/NAME lacks the name of the primary")
		}
	}
	cluster = cluster || !sentinel && query.Has("addr")
	u.RawQuery = query.Encode()
	return open(u.String(), sentinel, cluster)
}

func open(u string, sentinel, cluster bool) (redis.UniversalClient, error) {
	quiet := &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	switch {
	case sentinel:
		o, err := redis.ParseFailoverURL(u)
		if err != nil {
			return nil, errUnreadable
		}
		o.DisableIdentity, o.DialerRetries, o.ContextTimeoutEnabled = true, 1, true
		impatient(&o.ReadTimeout, &o.MaxRetries)
		return redis.NewFailoverClient(o), nil
	case cluster:
		o, err := redis.ParseClusterURL(u)
		if err != nil {
			return nil, errUnreadable
		}
		o.DisableIdentity, o.DialerRetries, o.ContextTimeoutEnabled, o.MaintNotificationsConfig = true, 1, true, quiet
		impatient(&o.ReadTimeout, &o.MaxRetries)
		return redis.NewClusterClient(o), nil
	}
	o, err := redis.ParseURL(u)
	if err != nil {
		return nil, errUnreadable
	}
	o.DisableIdentity, o.DialerRetries, o.ContextTimeoutEnabled, o.MaintNotificationsConfig = true, 1, true, quiet
	impatient(&o.ReadTimeout, &o.MaxRetries)
	return redis.NewClient(o), nil
}

// impatient has Redis asked twice at most, for three seconds each, unless the URL says otherwise: somebody waits for the answer.
func impatient(timeout *time.Duration, retries *int) {
	if *timeout == 0 {
		*timeout = answerWithin
	}
	if *retries == 0 {
		*retries = 1
	}
}

// answerWithin is how long Redis may take to answer, unless the URL says otherwise.
const answerWithin = 3 * time.Second

// reachable is connect, and asks for any answer. The URL may be that of one node: a server of a cluster knows that it is one, and answers for a part of the keys.
func reachable(ctx context.Context, raw string, cluster bool) (rdb redis.UniversalClient, reached, err error) {
	if rdb, err = connect(raw, cluster); err != nil {
		return nil, nil, err
	}
	if reached = reach(ctx, rdb); isUnreachable(reached) {
		reached = fmt.Errorf("Redis cannot be reached from here: %s: %w", hostsOf(raw), reached) //nolint:staticcheck // it is a name
	}
	if err := cmp.Or(noPrimary(raw, reached), noSentinel(ctx, rdb, raw, reached)); err != nil {
		_ = rdb.Close() // it has answered
		return nil, nil, err
	}
	one, is := rdb.(*redis.Client)
	if !is || reached != nil || !isOfCluster(ctx, one) {
		return rdb, reached, nil
	}
	_ = one.Close() // it has answered
	if rdb, err = connect(raw, true); err != nil {
		return nil, nil, err
	}
	if reached = reach(ctx, rdb); isUnreachable(reached) {
		reached = fmt.Errorf("this is a Redis Cluster, which names nodes that cannot be reached from here: %w", reached)
	}
	return rdb, reached, nil
}

// reach asks for any answer: one node of a cluster is enough.
func reach(ctx context.Context, rdb redis.UniversalClient) error {
	cluster, is := rdb.(*redis.ClusterClient)
	if !is {
		return rdb.Ping(ctx).Err()
	}
	var answered atomic.Bool
	err := cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		ctx, cancel := context.WithTimeout(ctx, cluster.Options().ReadTimeout) // one that is frozen need not be asked again
		defer cancel()
		err := node.Ping(ctx).Err()
		if err == nil || !isUnreachable(err) {
			answered.Store(true)
		}
		return err
	})
	if answered.Load() {
		return nil
	}
	return err
}

// isOfCluster asks what a client of a cluster has to ask, and other servers refuse. A user who may not will read that, and not that keys are elsewhere.
func isOfCluster(ctx context.Context, rdb *redis.Client) bool {
	err := rdb.ClusterSlots(ctx).Err() //nolint:staticcheck // it is what a client of a cluster asks
	return err == nil || redis.HasErrorPrefix(err, "NOPERM") && serverinfo.Ask(ctx, rdb).Mode == "cluster"
}

// hostsOf are the addresses in a URL that connect has read.
func hostsOf(raw string) string {
	_, hosts, _ := strings.Cut(raw, "://")
	if end := strings.IndexAny(hosts, "/?"); end >= 0 {
		hosts = hosts[:end]
	}
	return hosts[strings.LastIndex(hosts, "@")+1:]
}

// isUnreachable reports whether there is an error other than an answer of Redis.
func isUnreachable(err error) bool {
	var answer redis.Error
	return err != nil && !errors.As(err, &answer)
}
