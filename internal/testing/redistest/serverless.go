package redistest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Serverless is a server behind a proxy with the rules that serverless offerings document, or that their users report; docs/compatibility.md names
// both. It is one node that has all slots. A script needs a key, touches those that it declares, and publishes to channels in their slot alone: such offerings
// make sharded messages of all. They know few commands, and at most 3,999 arguments. Where reports differ, it is the stricter one.
type Serverless struct {
	*Proxy
	server *Server
}

// StartServerless starts one.
func StartServerless(tb testing.TB) *Serverless {
	tb.Helper()
	s := &Serverless{server: startNode(tb, clusterArguments)}
	s.Proxy = StartProxy(tb, s.server.Addr())
	if err := s.setUp(); err != nil {
		tb.Fatal(err)
	}
	return s
}

// startServerlessForMain starts one outside of a test, which ends with stop.
func startServerlessForMain() (s *Serverless, stop func() error, err error) {
	n, err := launch(clusterArguments)
	if err != nil {
		return nil, nil, err
	}
	s = &Serverless{server: &Server{node: n}, Proxy: newProxy(nil, n.addr())}
	if err = s.listenAnywhere(); err == nil {
		err = s.setUp()
	}
	stop = func() error {
		s.close()
		return n.close()
	}
	if err != nil {
		return nil, nil, errors.Join(err, stop())
	}
	return s, stop, nil
}

// setUp gives the server all slots, and the proxy its rules.
func (s *Serverless) setUp() error {
	ctx, cancel := context.WithTimeout(context.Background(), joinTimeout)
	defer cancel()
	_, port, _ := strings.Cut(s.Addr(), ":")
	rdb := newClient(s.server.Addr())
	defer rdb.Close() // it sent nothing that could be lost
	for _, args := range [][]any{
		{"config", "set", "cluster-announce-ip", "127.0.0.1", "cluster-announce-port", port},
		{"cluster", "addslotsrange", 0, slots - 1},
	} {
		if err := rdb.Do(ctx, args...).Err(); err != nil {
			return err
		}
	}
	err := await(ctx, func() error {
		info, err := rdb.ClusterInfo(ctx).Result()
		if err == nil && !strings.Contains(info, "cluster_state:ok") {
			err = errors.New("redistest: the cluster of one node is not there")
		}
		return err
	})
	if err != nil {
		return err
	}
	for refusal, match := range refusals {
		s.On(match, ReplyError(refusal))
	}
	scripts := &prefixed{first: inSlot() + declared}
	s.edit = func(words []string) []string {
		if len(words) > 2 {
			words[1] = scripts.script(words[0], words[1])
		}
		return words
	}
	return nil
}

// Client returns a new client that closes when tb ends: it has to be one for clusters, as on any such offering.
func (s *Serverless) Client(tb testing.TB) *redis.ClusterClient {
	return closeAtEnd(tb, redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: []string{s.Addr()}, DialTimeout: dialTimeout, ReadTimeout: ioTimeout, WriteTimeout: ioTimeout, DialerRetries: 1,
		MaintNotificationsConfig: quiet(),
	}))
}

// Around returns a client of the server itself, to look around with.
func (s *Serverless) Around(tb testing.TB) *redis.Client { return s.server.Client(tb) }

// most is how many arguments a request may have: 3,999 there. Half of them here, so that tests need half as many keys to have more.
const most = 1999

// refusals are what is answered to which commands.
var refusals = map[string]Match{
	"ERR unknown command": func(args []string) bool {
		sub := args[0]
		if len(args) > 1 && (sub == "cluster" || sub == "client" || sub == "pubsub") {
			sub += " " + strings.ToLower(args[1])
		}
		return !slices.Contains(known, sub)
	},
	"ERR Lua scripts without any input keys are not supported.": func(args []string) bool {
		return strings.HasPrefix(args[0], "eval") && len(args) > 2 && args[2] == "0"
	},
	fmt.Sprintf("ERR more than %d arguments", most): func(args []string) bool { return len(args) > most },
}

// known are commands of ElastiCache's list, docs.aws.amazon.com/AmazonElastiCache/latest/dg/SupportedCommands.html, without those that nobody here would
// send. The list has INFO and SCRIPT, too: what needs neither works everywhere.
var known = strings.Split("auth,hello,ping,echo,quit,reset,select,client getname,client reply,client setname,command,readonly,readwrite,"+
	"cluster countkeysinslot,cluster getkeysinslot,cluster info,cluster keyslot,cluster myid,cluster nodes,cluster replicas,cluster shards,cluster slots,"+
	"multi,exec,discard,eval,evalsha,time,dbsize,del,unlink,exists,expire,pexpire,pexpireat,pttl,ttl,persist,type,scan,touch,"+
	"get,set,mget,mset,getdel,getex,getset,getrange,setrange,setex,psetex,setnx,append,incr,incrby,decr,decrby,strlen,"+
	"hdel,hexists,hget,hgetall,hincrby,hkeys,hlen,hmget,hmset,hset,hsetnx,hvals,hscan,"+
	"zadd,zcard,zcount,zincrby,zrange,zrangebyscore,zrank,zrem,zremrangebyscore,zrevrange,zrevrangebyscore,zrevrank,zpopmin,zpopmax,zscore,zscan,"+
	"sadd,scard,sismember,smembers,srem,sscan,lpush,rpush,lpop,rpop,llen,lrange,lpos,ltrim,"+
	"publish,subscribe,unsubscribe,spublish,ssubscribe,sunsubscribe,pubsub channels,pubsub numsub,pubsub shardchannels,pubsub shardnumsub", ",")

// encode is a command as clients send it.
func encode(words []string) []byte {
	raw := fmt.Appendf(nil, "*%d\r\n", len(words))
	for _, w := range words {
		raw = append(strconv.AppendInt(append(raw, '$'), int64(len(w)), 10), "\r\n"...)
		raw = append(append(raw, w...), "\r\n"...)
	}
	return raw
}
