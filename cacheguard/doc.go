// Package cacheguard is a read-through cache on Redis or Valkey, without cache stampedes: it loads a missing entry once, however many
// instances and callers ask for it at the same time, and it never stores a value that a write has overtaken.
//
//	guard, err := cacheguard.New(rdb, cacheguard.Config{Prefix: "shop", TTL: time.Minute})
//	...
//	p, err := cacheguard.Get(ctx, guard, "product:42", func(ctx context.Context) (Product, error) {
//		return db.Product(ctx, 42)
//	})
//
// # Entry points
//
//   - New makes a Guard: one per process and Prefix. Guard.SelfCheck checks that Redis allows all it needs; Guard.Close ends
//     it.
//   - Get reads one key, GetMany reads many, and Fetch reads values that carry their own freshness.
//   - NewCache makes a Cache, a typed view of a Guard for one kind of thing, with Get, GetMany, Invalidate, Update and Put.
//   - Call Guard.Invalidate after a write, or let Guard.Update or Guard.UpdateMany make the write.
//   - SetTTL, SetTags and ErrNotFound are for loaders. Hooks and Guard.Stats are for monitoring.
//   - Guard.Inspect shows what there is of a key. Guard.Bypass and Guard.BypassFleet turn the cache off
//     for a while.
//
// # Guarantees
//
//   - One load per key in the whole fleet, while Redis keeps the lease.
//   - Never a stale fill, even when it does not: a load stores its value only if nothing invalidated the key, and no
//     other load stored a value, since it began.
//   - A Get that begins after an Invalidate returned nil, in any process, never returns a value loaded before it (but
//     see Limits about local tiers).
//   - InvalidateTags promises the same for all entries with a tag, and InvalidateAll for all entries under
//     the Prefix.
//   - Cancelling one caller, even the first, never fails another. A loaded value reaches everyone who waits for it,
//     even if Redis fails.
//
// # Limits
//
//   - A second load runs beside the first if Redis does not answer within RedisTimeout, and after WaitTimeout.
//   - Redis replicates asynchronously: a failover to a replica that lags behind can forget an invalidation or a lease.
//   - The instances of a Ring may use different shards for a key, and then an invalidation reaches one of them.
//   - A loader can get a row from before the write, although it runs after the invalidation: from a lagging database replica,
//     or in a transaction whose snapshot is older than the write. Its value is stored, and served until its TTL. So a loader
//     should begin its own transaction, or read outside any.
//   - A Redis that restarts from an older RDB or AOF file has the entries of that time again, also those that were invalidated since.
//   - If a writer does not call Invalidate, only the TTL bounds how long the old value lives. The feeds of package cdc invalidate what
//     such writers change.
//   - With a local tier (Config.Local), an Invalidate reaches other instances by a message. Until it arrives, they may
//     serve the value in their memory: see LocalConfig.
//   - Callers that share a read or a load get the same decoded value, so values are read-only: copy what you want to change.
//     The callers of a load get the value that the loader returned; others get it through the Codec. With encoding/json,
//     unexported fields and the types behind an interface are lost on the way.
//
// # How a Get is answered
//
//	the cache is bypassed, or an
//	invalidation of the key is pending ─────> bypassed        load without Redis
//	the local tier has it ──────────────────> local, negative return it
//	read it from Redis, one request; it is
//	  fresh ────────────────────────────────> hit, negative   return it
//	  stale, or drawn for an early refresh ─> stale, hit      return it, and replace it in the background
//	  missing, expired or unreadable ───────> loaded, shared  a miss, see below
//	  of another version of the program, or
//	  of another kind ──────────────────────> loaded, shared  load without storing, while the entry is young
//	  not answered ─────────────────────────> stale           return what the local tier has, if StaleFor is set
//	                                          bypassed        else load without Redis
//
// The words behind the arrows are the Outcomes. The function decide in decide.go is this table, and Get in get.go follows it.
// GetMany uses the same table for each key. In a Fetch, the Judge says what is fresh.
//
// Concurrent reads share round trips: an MGET, or a pipeline for each node (package link). No call gets a value that was read
// before it asked. After some twenty misses in a row, a Get skips the read, because acquire.lua (step 2 of a miss) also returns
// a value if there is one. Scripts for many keys share requests too, and a request that nobody waits for any more is not sent.
//
// # A miss over two instances
//
// Each key has a value (a string) and, during a load, a lease (a hash) in the same cluster slot. Both have a TTL.
// Package protocol (internal/cache/protocol) describes them, and has the scripts. Instance A misses first, then instance B:
//
//  1. A starts a flight for the key, which belongs to no single caller (package flight). Later Gets on A join it. The flight
//     takes one of MaxLoads if one is free; otherwise it asks only for the value, not for the lease.
//  2. A sends acquire.lua, with a token of 128 random bits. Redis has neither value nor lease, so A gets the lease.
//  3. B starts a flight and sends acquire.lua too. Redis finds A's lease and writes B's inbox (package wake) into it. B waits.
//  4. A runs its loader. In the meantime renew.lua extends the lease at each third of LeaseTTL.
//  5. The loader returns. The callers on A that began before the loader did get the value and leave.
//  6. A sends fill.lua. In one step, Redis checks that the lease is still of A's generation, stores the value, removes the
//     lease, and publishes to B's inbox. A small entry travels in the message; for a larger one, B asks again.
//  7. B's flight wakes, and its callers get the value. A's flight ends. Up to this point, Gets on A join the flight, and
//     Close waits for it.
//
// The same with a disturbance:
//
//   - A value was stored before step 2: acquire.lua returns it.
//   - A load failed a moment ago: acquire.lua returns the text of its error, which fail.lua left beside the lease.
//   - A loses all its callers: the loader's context ends, and release.lua removes the lease without a result.
//   - A dies: nobody renews the lease. When its deadline is over, B asks again and takes the lease.
//   - The key is invalidated during step 4: the lease is gone, and fill.lua refuses. The callers of step 5 keep their value,
//     as they asked before the invalidation; callers that joined later ask again.
//   - The loader is slower than the lease, or A was paused: fill.lua still stores the value if nothing was stored or
//     invalidated in between, and otherwise refuses it.
//   - B's subscription is down: B polls. After WaitTimeout, B loads by itself, without storing.
//   - Redis does not answer: A and B load without it, see "Outages".
//   - A reply is lost, and go-redis sends the script again: acquire.lua grants A's token its own lease once more, and the
//     second fill.lua finds the value of the first. If A gives up, it releases the lease in the background.
//
// # What may be stored
//
// A lease has a generation: the token of the load that created it, and the time. The lease keeps its generation when another
// load takes it over after the deadline. (It contains the time because a late copy of acquire.lua can recreate the lease of a
// load after an Invalidate removed it.) Storing and invalidating both remove the lease. So if a load finds the generation it
// acquired, nothing was stored or invalidated since, and fill.lua checks no more than that. The proof is always something
// that is there, never something missing: a load whose lease was evicted or flushed stores nothing. That is why the hash
// outlives the deadline of the lease.
//
// # Which callers may have a loaded value
//
// A call that began before the loader did may have its value in any case. A call that joined later may have it if the value
// was stored, because then nothing was invalidated in between. Otherwise the call asks again, at most three times, and then
// loads by itself, without storing. A logical clock in package flight tells earlier from later.
//
// # Invalidation
//
//  1. Invalidate sends invalidate.lua for each key, with a numbered notice, in batches for each part of a cluster.
//  2. In one step, the script removes the values and leases of all versions of the key, tells those who wait for one of the leases
//     to ask again, and publishes the notice.
//  3. The Guard's own local tier forgets the key before Invalidate returns. Other tiers do when the notice reaches them (package tier).
//  4. A load that was under way runs on. Its fill.lua does not find the generation, and stores nothing.
//  5. Keys for which Redis gave no answer are pending: see "Outages".
//
// # Tags, kinds, everything
//
// For each tag, each kind (the Name of a Cache) and the Prefix, Redis has an epoch: a random text. An entry has the epochs that its names had
// before its loader began, and is valid only while they are the current ones. So InvalidateTags and InvalidateAll just remove the epoch, which
// costs the same for ten entries and for a million. Package epoch has the protocol. A Get reads the value and its epochs in one request, and
// trusts nothing that was read before it began. A load goes like this:
//
//  1. The load takes the epochs of the read that missed. Missing ones are made before the loader runs.
//  2. The loader runs, and may name tags.
//  3. The entry gets the epochs. If the loader named a tag that the key did not have before, its epoch is read now, together with one that every
//     InvalidateTags removes. If that is the one of step 1, no tag was invalidated in between, and fill.lua stores the value.
//  4. If it is another one, some tag was invalidated. The value reaches the callers that asked before, and is not stored. The Guard remembers
//     the tags of the key, so the next load reads their epochs in step 1, and invalidations of other tags do not disturb it.
//
// If callers joined after the loader began, the Guard reads the epochs again while fill.lua runs: they may have the value only if nothing was
// invalidated since.
//
// # Versions of a program
//
// A Cache with a CacheConfig.Version keeps its value, lease and waiters at keys of its own, in the slot of the key: for version 1, P:{K}:v1
// instead of P:{K}. There are four such version slots, so versions 5 and 9 use v1 too. Each version loads and stores for itself, by the protocol above.
// Everything that belongs to the thing and not to a version exists once: the write lock, the intent, notices, tags. An invalidation removes,
// in one step, the values and leases of all four version slots and of no version. It need not know which versions there are.
//
//  1. A Get of version 1 reads P:{K}:v1. Nobody but version 1 stores there.
//  2. acquire.lua asks for the lease P:{K}:v1:lease, and looks at the intent of all versions, P:{K}:intent.
//  3. fill.lua stores if the generation is still in that lease. A load of another version does not touch it.
//  4. invalidate.lua, begin_update.lua, end_update.lua and put.lua remove the values and leases of all versions (put.lua keeps
//     the value that it stores), and wake those who wait for any of the leases.
//
// A version that dies, is paused or loses a reply affects the others no more than another instance would:
//
//   - One that dies in step 2 or 3 leaves a lease that only its own version waits for.
//   - One that is paused in step 3 finds its lease gone if any version invalidated the key, and stores nothing.
//   - If no reply comes to step 4, it has happened for all versions or for none. It is sent again, and running twice does
//     no harm.
//   - One that dies in an Update leaves the intent, so no version gets a lease until that has expired. No old value is left, as
//     begin_update.lua has removed them all.
//   - A value that Redis evicts is a miss of one version.
//
// Five versions in a row are one more than there are version slots. An entry has its version, so the first and the fifth do not serve
// each other's entries: where one finds an entry of the other, it loads without storing, and replaces the entry only once that is older
// than a minute (see internal/cache/guess). They wait for each other's loads, and see each other's failures.
//
// A library older than CacheConfig.Version invalidates only the entry of no version. It must have left the fleet before the first Version
// is set. Invalidations by this library reach the entries of the older one, so going back to it is possible.
//
// # GetMany
//
// GetMany makes one flight per missing key, each with its own lease and token, around one call of the loader. Other Gets can
// join any of these flights.
//
// With CacheConfig.Batch, the flights of single Gets that miss at about the same time share a call, too (package gather): a flight joins
// when it begins, and the call runs when those that have joined have their leases, or have found a value. The call has one slot. If it
// fails, each key is loaded on its own, in a slot of its own.
//
// # Loads that nobody has to wait for
//
// Refreshes in the background, comparisons, warm-ups, shadows, and loads for callers with Patience take only slots that no other load
// waits for (limit.Need.Spare). Their flights are apart from those of other callers, who would else wait at their priority. If both want
// the same key, the lease decides, as between instances.
//
// # Outages
//
// While Redis does not answer, a Guard only probes it (package breaker). Loads go on without Redis: the callers of an instance
// share them, and at most MaxLoads run at a time. (With Config.FailClosed, Get returns a *RedisError instead.) Invalidations
// are still tried. Those that fail are pending: the Guard sends them again until they succeed, and does not read their keys
// until then.
//
// # Local tier
//
// A Guard with a local tier (package tier) asks it before Redis, and fills it with what it reads from Redis. invalidate.lua
// publishes a numbered notice, which makes every instance forget the key.
//
// # Update
//
//  1. Update takes the key's write lock (package rwlock).
//  2. begin_update.lua removes value and lease, and leaves an intent, which is renewed as leases are.
//  3. The write runs. While the intent stands, acquire.lua grants no lease; it registers callers, so that they hear of the
//     end.
//  4. end_update.lua removes value and lease again, and the intent, and wakes those who wait.
//
// If nobody has the lock or waits for it, steps 1 and 2 are one script (lock_update.lua), and step 4 gives up the lock as well (unlock_update.lua,
// unlock_put.lua). So an Update takes two round trips, and an UpdateMany too, whose keys share requests. If the lock of one of its keys is taken, it
// gives up those that it got, and waits for one after the other in the order of the keys, as in the steps above: nobody waits for a lock
// while he holds a later one, so there is no circle. At each step of the short way:
//
//   - The process dies, or is paused, after lock_update.lua: the lock ends with its lease, the intent as below. After unlock_update.lua: nothing is left.
//   - The caller leaves, or no reply comes, in lock_update.lua: write is not called. In the background, the Guard gives up what it may have got with
//     unlock_update.lua, after which the lock refuses the token, so a late copy of lock_update.lua takes nothing. Had the process died before that, a late
//     copy would take the lock until its lease ends, and keep loads from storing until the intent expires.
//   - A second copy of lock_update.lua while its token has the lock renews the lease, and nothing else. If the intent is gone by then, it announces the
//     update again, but leaves no proof for a Put.
//   - No reply comes to unlock_update.lua: Update returns an error, the invalidations are pending, and the call is sent again until it is known to have run
//     or the lease has ended. A late copy finds neither its token in the lock nor its own writer in the intent, so it leaves those of others alone; it
//     invalidates the key, and has unlock_put.lua store nothing, because the proof is gone.
//   - The lease is lost or revoked during write: the lock is another's, and unlock_update.lua ends the intent all the same. If Close has given the lock up,
//     end_update.lua does.
//
// With Config.Replicas or Config.WriteLock, every Update takes the steps one by one.
//
// Cache.Put is an Update with two differences. Step 2 also leaves a generation, in a lease that nobody holds. Step 4 is put.lua,
// or unlock_put.lua, which stores the written value if that generation and the intent are still there, and no other writer's intent is.
//
// The intent of a dead writer expires after at most twice LeaseTTL. Then loads store again.
//
// # Intents
//
// An intent stands on keys and on tags from Intend to Done, beside what there is of them; nobody waits for it. It does not revoke what is cached, but gives it an end:
//
//  1. intend.lua adds the intent, with when it ends, to a sorted set beside the value. It shortens the TTLs of value and lease to that, marks the lease, marks the entry for local
//     tiers, which do not keep one that ends with an intent, and notifies them.
//  2. While it stands, acquire.lua and renew.lua give leases its TTL at most, and a mark. For a load whose lease has a mark, fill.lua asks which of the intents ends first, and stores
//     the value for as long at most. So a fill without intents looks for none.
//  3. The intent is renewed at a third of twice LeaseTTL. That lengthens nothing that was shortened.
//  4. done.lua removes the intent, and the rest as invalidate.lua does.
//
// A tag has an epoch instead of a value (package epoch): the epoch gets the end of the intent, and with it all entries that have it. Those made while the intent stands get it too, as does the
// epoch of all tags together, which proves that tags were not invalidated. An epoch that ends has a mark for local tiers.
//
// What can go wrong, at any step:
//
//   - The process dies, or is paused: at the end of the intent Redis drops all that was marked. A TTL can be some ms late, so a script that finds the end of an intent over removes values, leases
//     and epochs itself; the set keeps the intent for a minute for that. Of several intents, the first end counts: the others do not protect what that one named.
//   - Redis evicts the intent: a marked lease without an intent may store nothing, and the next renewal announces the intent again. The same after a pause.
//   - The reply to Intend or Also is lost: the caller does not commit, and the intent expires. The reply to Done is lost: it is pending, and runs again.
//   - A late copy of intend.lua: some lives are shorter until it expires. Of the renewal: it finds no intent, and does nothing. Of done.lua: one more invalidation.
//   - Redis is full: Intend fails, and Done does not.
//
// # Reading the code
//
//   - What there is: Guard in guard.go, and open.go, which makes its parts. Config in config.go, and what it consists of in settings.go.
//   - A hit: Get in get.go, retrieve and read; read.go decodes it, and decide.go says what follows. Many keys: GetMany in many.go, readkeys.go,
//     batch.go. The request leaves in package link. What a call is reported to: answered.go, report.go.
//   - A miss: job.go says what to do, flights.go joins or starts a flight, rebuild.go asks Redis, and waits for another instance, lead.go loads and
//     stores, load.go runs the loader; request.go has the requests. The scripts are acquire.lua and fill.lua in internal/cache/protocol/lua.
//   - A write: invalidate.go, update.go, put.go, intend.go say what it promises. Rooms below internal do it: invalidate sends, and repeats what is
//     pending; update locks, announces and ends; intent keeps intents. The scripts share forget in internal/cache/protocol/lua/prelude.lua.
//   - The local tier: local.go, and package tier. Tags, kinds, everything: invalidate.go, scope.go, and package epoch.
//   - Other rooms below internal that do not know the Guard, and that it calls: limit and gather (when a load may run, and which loads share a call),
//     report (what is logged and counted), verify, selfcheck, bypass, packing (compression, and sizes), failure (errors that travel), guess (what
//     will probably be), keytext (keys of a Cache), inprocess (what a disabled Guard has for Redis).
//   - Which part belongs where, with its tests: CONTRIBUTING.md. Why it is so: docs/design/cache.md.
package cacheguard
