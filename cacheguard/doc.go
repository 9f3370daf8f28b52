// Package cacheguard is a read-through cache on Redis. It loads a missing entry once, however many instances and callers ask
// for it at the same time, and it never stores a value that a write has overtaken.
//
//	guard, err := cacheguard.New(rdb, cacheguard.Config{Prefix: "shop", TTL: time.Minute})
//	...
//	p, err := cacheguard.Get(ctx, guard, "product:42", func(ctx context.Context) (Product, error) {
//		return db.Product(ctx, 42)
//	})
//
// # Entry points
//
//   - New makes a Guard, one for each process and Prefix. Guard.SelfCheck tries what it needs of Redis; Guard.Close ends it.
//   - Get reads one key, GetMany many, and Fetch values that carry their own freshness.
//   - NewCache makes a Cache, a typed view of a Guard for one kind of things, with Get, GetMany, Invalidate, Update and Put.
//   - Guard.Invalidate follows a write; Guard.Update and Guard.UpdateMany make it.
//   - SetTTL and ErrNotFound are for loaders. Hooks and Guard.Stats are for those who watch.
//   - Guard.Inspect looks a key up, and Guard.Bypass and Guard.BypassFleet turn the cache off for a while.
//
// # Guarantees
//
//   - One load per key in the whole fleet, while Redis keeps the lease.
//   - Never a stale fill, even when it does not: a load stores its value only if nothing invalidated the key, and no
//     other load stored a value, since it began.
//   - A Get that begins after an Invalidate returned nil, in any process, never returns a value loaded before it (with a
//     local tier: see Limits).
//   - InvalidateTags promises that for all entries with a tag, and InvalidateAll for all under the Prefix.
//   - Cancelling one caller, the first included, never fails another. A loaded value reaches those who wait for it,
//     even if Redis fails.
//
// # Limits
//
//   - A second load runs beside the first when Redis does not answer within RedisTimeout, and after WaitTimeout.
//   - Redis replicates asynchronously: a failover to a replica that lags behind can forget an invalidation or a lease.
//   - The instances of a Ring may disagree for a while on which shards are up. An invalidation then reaches only one of the
//     shards that are in use for a key.
//   - A loader can be handed a row that is older than the write that was invalidated: by a replica of the database that
//     lags behind, or by a transaction whose snapshot is older than the write. The load began after the Invalidate or Update,
//     so its value is stored, and served until its TTL. A loader should begin a transaction of its own, or read outside any.
//   - InvalidateAll relies on clocks that advance at the same rate on all machines, within a tenth.
//   - The TTL alone bounds what a writer leaves behind that does not call Invalidate.
//   - With a local tier (Config.Local), an Invalidate reaches other instances by a message. Until it arrives they may serve
//     what they have in memory: see LocalConfig.
//   - Callers that share a read or a load get the same decoded value, so values are read-only: copy what you want to change.
//     The callers of a load get what the loader returned, and others what the Codec made of it. With encoding/json,
//     unexported fields and the types behind an interface are lost on the way.
//
// # How a Get is answered
//
//	the cache is bypassed, or an
//	invalidation of the key is pending ─────> bypassed        load without Redis
//	the local tier has it ──────────────────> local           return it
//	read it from Redis, one GET; it is
//	  fresh ────────────────────────────────> hit, negative   return it
//	  stale, or drawn for an early refresh ─> stale, hit      return it, and replace it in the background
//	  missing, expired or unreadable ───────> loaded, shared  a miss, see below
//	  not answered ─────────────────────────> stale           return what the local tier has, if StaleFor is set
//	                                          bypassed        else load without Redis
//
// The words behind the arrows are the Outcomes. The table is decide in decide.go, and Get in get.go follows it; GetMany uses the
// same table for each key, and Fetch has its Judge say what is fresh.
//
// Concurrent reads share round trips: an MGET, or a pipeline for each node (package link). No call gets a value that was read
// before it asked. After some twenty misses in a row a Get does not read first, as step 2 below returns a value if there is
// one. Scripts of many keys share requests, too, and what nobody waits for any more is not sent.
//
// # A miss over two instances
//
// For each key there are a value (one string) and, while it is being loaded, a lease (a hash) in the same cluster slot.
// Package protocol describes both, and has the scripts. Each has a TTL. Instance A misses first, then instance B:
//
//  1. A starts a flight for the key, which belongs to no single caller (package flight). Later Gets on A join it. The flight
//     takes one of MaxLoads if one is free; without it, it asks for the value, but not for the lease.
//  2. A sends acquire.lua, with a token of 128 random bits. Redis has neither value nor lease, so A gets the lease.
//  3. B starts a flight and sends acquire.lua too. Redis finds A's lease and writes B's inbox (package wake) into it. B waits.
//  4. A runs its loader. In the meantime renew.lua extends the lease at each third of LeaseTTL.
//  5. The loader returns. The callers of A that began before the loader did have their value, and go.
//  6. A sends fill.lua. In one step, Redis finds the lease as A left it, stores the value, removes the lease, and publishes to
//     B's inbox, with the entry in the message if it is small.
//  7. B's flight wakes, and its callers have the value. A's flight ends; until here, Gets on A joined it and Close waits
//     for it.
//
// What happens instead, when:
//
//   - A value was stored before step 2: acquire.lua returns it.
//   - A load failed a moment ago: acquire.lua returns the text of its error, which fail.lua left in the lease.
//   - A loses all its callers: the loader's context ends, and release.lua removes the lease without a result.
//   - A dies: nobody renews the lease. When its deadline is over, B asks again and takes the lease.
//   - The key is invalidated during step 4: the lease is gone, and fill.lua refuses. The callers of step 5 keep their value,
//     which they asked for before; those that joined later ask again.
//   - The loader is slower than the lease, or A was paused: fill.lua stores the value all the same if nothing was stored or
//     invalidated in between, and refuses it otherwise.
//   - B's subscription is down: B polls. After WaitTimeout, B loads by itself, without storing.
//   - Redis does not answer: A and B load without it, see "Outages".
//   - A reply is lost, and go-redis sends the script again: acquire.lua grants A's token its own lease once more, and the
//     second fill.lua finds the value of the first. If A gives up, it releases the lease in the background.
//
// # What may be stored
//
// A lease has a generation: the token of the load that created it, and the time. The lease keeps its generation when another
// load takes it over after the deadline. (The time is in it because a copy of acquire.lua can arrive late, and recreate the
// lease of a load after an Invalidate removed it.) Storing and invalidating both remove the lease. So a load that finds the
// generation it acquired knows that nothing was stored and nothing invalidated since, and that is all that fill.lua asks for.
// The proof is always something that is there, never something missing: a load whose lease was evicted or flushed stores
// nothing. For this purpose the hash outlives the deadline of the lease.
//
// # Who may have what was loaded
//
// A call that began before the loader did may have its value in any case. A call that began later, and joined, may have it
// if the value was stored, as then nothing was invalidated in between. Otherwise it asks again, and after three times it loads
// by itself, without storing. A logical clock in package flight tells earlier from later.
//
// # Tags
//
// A loader names the tags of its value by SetTags. For each tag Redis has a version, a random text, and an entry has stamps: the
// versions that its tags had before its loader began. It is valid only while they are the same. So InvalidateTags removes the versions,
// which costs the same for ten entries and for a million. A version that was evicted makes entries invalid, too. A hit with tags reads
// the versions after the value, in one batch.
//
//  1. The Guard reads the versions of the tags that are known before the load, together with acquire.lua: those of the entry that is
//     replaced, and those that the last load of the key had and could not store. It also reads one more version, which stands for all
//     tags together.
//  2. The loader runs, and names a tag that nobody knew.
//  3. The Guard reads the version of this tag, and then that of all tags together once more. InvalidateTags removes the latter first. So
//     if it is the one of step 1, nothing has removed the tag's since then, and fill.lua stores the value with it.
//  4. If it is another one, some tag was invalidated. The value reaches those who asked before, and is not stored. The Guard remembers
//     the tags of the key, and the next load knows them in step 1: it does not matter then what others invalidate.
//
// While fill.lua runs, the Guard reads the versions again, for callers that joined after the loader began: they may have the value
// only if nothing was invalidated since.
//
// InvalidateAll works the same way. All entries have a stamp of the Prefix, and those of a Cache one of their kind. Hits need not ask for
// these: a Guard uses what it knows for 0.9 seconds, from before it asked, and then reads them beside the next value. InvalidateAll
// removes the version, and returns a second later, when all such knowledge is over. A Guard that finds another stamp than the one it
// knows asks at once. On a cluster there is a version for each sixth of the slots, so that a dead node takes no other keys with it.
//
// # Versions of a program
//
// A Cache with a CacheConfig.Version has its value, its lease and those who wait for it at keys of its own, in the slot of the key: P:{K}:v1 in
// place of P:{K} for version 1, or 5, or 9, as there are four such seats. So each version loads and stores for itself, by the protocol
// above. What belongs to the thing, and not to a version, is there once: the write lock, the intent, notices, tags. Whatever invalidates the key
// removes the values and leases of all four seats, and those of no version, in the same step. It need not know which versions there are.
//
//  1. A Get of version 1 reads P:{K}:v1. Nobody but version 1 stores there.
//  2. acquire.lua asks for the lease P:{K}:v1:lease, and looks at the intent of all versions, P:{K}:intent.
//  3. fill.lua stores if the generation is still in that lease. A load of another version does not touch it.
//  4. invalidate.lua, begin_update.lua, end_update.lua and put.lua remove everything of all versions; put.lua leaves what it has
//     stored. They tell those who wait for any of the leases.
//
// At each step a version that dies, is paused, or has lost a reply is to the others what another instance is:
//
//   - One that dies in step 2 or 3 leaves a lease that only its own version waits for.
//   - One that is paused in step 3 finds its lease gone if any version invalidated the key, and stores nothing.
//   - A step 4 of which no reply came has happened for all versions, or for none. It is sent again, and does no harm twice.
//   - One that dies in an Update leaves the intent, and with it no version gets a lease until that has expired. Nobody's value is there, as
//     begin_update.lua has removed them all.
//   - A seat that Redis evicts is a miss of one version.
//
// Five versions in a row are one more than there are seats. An entry has its version as a stamp, so the first and the fifth do not serve
// each other's entries: each loads without storing where it finds one of the other, and replaces it only when it is older than a minute
// (see alien.go). They wait for each other's loads, and see each other's failures.
//
// A library from before CacheConfig.Version invalidates the entry of no version, and no other. It must have left the fleet before the first
// Version is set. What this library invalidates reaches its entries, so one can go back to it.
//
// # GetMany
//
// GetMany makes a flight for each missing key, each with a lease and a token of its own, around one call of the loader. Other
// Gets can join any of these flights.
//
// # Outages
//
// While Redis does not answer, a Guard hardly asks it (package health). Loads go on without Redis: the callers of an instance
// share them, and at most MaxLoads run at a time. (With Config.FailClosed, Get returns a *RedisError instead.) Invalidations are still tried. Those that fail are pending: the Guard sends
// them again until they succeed, and does not read their keys before.
//
// # Local tier
//
// A Guard with a local tier (package tier) asks it before Redis, and fills it from what it reads. invalidate.lua publishes a
// numbered notice that makes every instance forget the key.
//
// # Update
//
//  1. Update takes the key's write lock (package rwlock).
//  2. begin_update.lua removes value and lease, and leaves an intent, which is renewed as leases are.
//  3. The write runs. While the intent stands, acquire.lua grants no lease; it registers those who ask, to tell them of the
//     end.
//  4. end_update.lua removes value and lease once more, and the intent, and wakes those who wait.
//
// The Put of a Cache is an Update whose step 2 also leaves a generation, in a lease that nobody holds, and whose step 4 is put.lua:
// it stores what was written if that generation and the intent are there still, and no other writer's intent is.
//
// A writer that dies leaves its intent for two times LeaseTTL at most. Then it expires, and loads store again.
package cacheguard
