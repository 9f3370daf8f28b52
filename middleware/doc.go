// Package middleware caches the responses of a server's own endpoints in Redis, through a cacheguard.Guard. It behaves as RFC 9111 asks
// of a shared cache. When many requests want the same missing page, the handler is called once for all instances.
//
//	cache, err := middleware.New(guard, middleware.Config{})
//	...
//	r := chi.NewRouter()
//	r.Use(cache.Handler)
//	r.Get("/products/{id}", product) // says w.Header().Set("Cache-Control", "max-age=60, stale-while-revalidate=600")
//
// It is plain net/http. It knows two things about chi: the patterns of its routes, and that chi reuses its
// routing contexts.
//
// # What it does
//
//   - It honours the handler's Cache-Control and Expires, or instead of them CDN-Cache-Control or Config.Target (RFC 9213), including
//     stale-while-revalidate and stale-if-error (RFC 5861). A response that says nothing about its lifetime is not served again, unless
//     Config.DefaultTTL or Config.Heuristic are set; with a Last-Modified, public and 405, 414 or 501 are, for ten seconds at most.
//     Contradictory or unparsable freshness information makes a response stale.
//   - It honours the Cache-Control of requests, unless Config.IgnoreRequest is set.
//   - It answers conditional requests, HEAD and ranges from stored pages. If the page is missing, the handler makes all of it, once
//     for all requests that want parts of it. If the page cannot be stored, the handler is called for the part.
//   - It revalidates stale pages with the handler, which gets If-None-Match and If-Modified-Since and may answer
//     304.
//   - It keeps a page that may still be served when a refresh fails or cannot be stored. A page stands in for a handler that fails for
//     ten seconds, or Config.StaleIfError.
//   - A successful POST, PUT, PATCH or DELETE invalidates its own URL, those in its Location and Content-Location, and the groups in its
//     Cache-Group-Invalidation (RFC 9875).
//   - While Redis does not answer, the handler is called once for all requests of an instance that want the same page.
//   - Cache-Status (RFC 9211) says how each response came about, and why it was not stored: detail=no-store, private, authorization,
//     set-cookie, vary, status, stale (it could never be used), no-lifetime (it does not state one), too-large, flush, incomplete, tags
//     (there are too many), field (one has a line break), method (a response to HEAD), no-ranges (the page cannot be kept in slices),
//     limit or first (see Limits), search (the page says by which URLs it is found, and is stored the next time), not-invalidated (the
//     invalidation after a POST could not be sent).
//   - A page with No-Vary-Search (draft-ietf-httpbis-no-vary-search) is found under URLs that differ in parameters that do not matter.
//
// # What is not stored
//
//   - Responses to methods other than GET and HEAD, and to requests with a body, an Upgrade, If-Match or If-Unmodified-Since, a URL of
//     more than 8 KiB, a field that overrides the method, or a Connection that names an end-to-end field (a proxy behind the cache would
//     drop that field).
//   - Responses with no-store, private, Vary: *, Set-Cookie (but see Config.StoreSetCookie) or status 206.
//   - Responses to requests with Authorization, without public, s-maxage or must-revalidate.
//   - Responses larger than Config.MaxBody (but see Config.SliceBytes), or shorter than their Content-Length.
//   - Responses of handlers that panic, hijack the connection, take longer than the Guard's LoadTimeout, set a status of 400 or more
//     when they have begun to write, of another hundred than the one before, or flush without having stated that the response may be stored. Unless something has been sent,
//     the client gets the later status, with all that was written.
//   - Responses with a line break in a field. Their trailers are under the same rules as their headers.
//
// # What tells pages apart
//
// A page is named by Host, path and query, in the normal form of RFC 9110 section 4.2.3 and RFC 3986 section 6.2. So all notations of a URL are
// one page to Invalidate, PURGE, Warm, Location and a POST: an empty path, the default port of either scheme, letters of a host, the dot of the
// root, IPv6, IDNA, dots in a path, and escapes. The scheme is no part of the name, as behind a proxy that ends TLS nobody knows it.
//
// Variants of a page differ by the fields that Vary names, in which the order of members counts (but see Config.SortAccept); by the scheme of
// the URL and of the connection; by the client's certificate; by the notation of path and query, which routers and handlers read as they were
// sent; and by what a router in front made of the URL.
//
// This is computed once, as a request, and the handler of a page that may be stored gets that, byte for byte: what does not count reaches it
// in no form. Its Host has one notation, its form has its query alone, whoever read it in front, each field has one notation, its protocol is
// HTTP/1.1, and its TLS has the client's certificate alone. What stands in front gives it a context, a RemoteAddr, a Pattern and path values,
// taken from the client that caused the load: what a page takes from them belongs in Key.Claim.
//
// A request with Authorization gets a shared page only if the page says public, s-maxage or must-revalidate. With Config.DefaultTTL or
// Config.Heuristic, a request with a Cookie gets one only if the page states its own lifetime.
//
// Some fields, such as X-Forwarded-Host, give proxies and frameworks another host, scheme, path or method (see Config.KeyFields). They
// always tell pages apart, so a client that sends one can poison only its own page. Other fields that shape a handler's answer belong in
// its Vary, or in Config.Key with what else tells pages apart. Parameters that Config.Key leaves out do not reach the handler.
//
// What decides about a response is what its client gets: what was set in front of the cache on the ResponseWriter, and what the handler made
// of it. A Vary in front tells pages apart, and a private in front keeps them from being stored. But the fields that were set in front are
// never stored: each client has its own.
//
// # What a handler has to know
//
//   - As long as its response may be stored, nothing of it is sent before the handler returns, not even at a Flush: the response belongs
//     to everyone who waits, and the client that caused it may read slowly. As soon as its header or its size shows that the response
//     cannot be stored, it is streamed to that client, and the other requests call the handler for themselves. For Config.PassFor,
//     requests for this page then go straight to the handler.
//   - It runs in its own goroutine. Its context ends when nobody waits for the response any more, not when its own client leaves (but see
//     Config.FinishLoads).
//   - It sees the canonical request, without conditions and Range, with a URL of its own that it may change. With stale-while-revalidate, it may run
//     after the request has been answered; the values in the request's context must allow that, as chi's do.
//   - It is called with GET for a HEAD, unless chi or http.ServeMux chose it for HEAD before they called the cache. Other routers
//     that choose by the method belong, as a whole, behind the cache. So do routers that reuse their contexts, such as gin and Echo.
//   - If it asks for its own page within the process, with its request's context, it is called again. If it does so over the network, it
//     waits for itself until LoadTimeout.
//   - If LoadTimeout ends its context before its response is complete, the client gets a 504.
//
// # How a page is answered from the cache
//
//  1. Cache.Handler makes an exchange for the request (serve.go). It passes requests that no cache may answer through to the handler,
//     and makes the canonical request of the others, which names their page (request.go, internal/canonical).
//  2. A lookup asks the Guard for the page's record, and if that names another variant, for the variant's (find.go, internal/record).
//  3. The Guard reads the record, from Redis or its local tier, and lets evaluate decide: serve it, serve it and refresh it in
//     the background, or replace it (evaluate.go).
//  4. The record is sent: whole, as a range, or as a 304 (answer.go, send.go).
//
// # How a missing page is made once for the fleet
//
//  1. The Guard lets one of all lookups call load (load.go). The others wait: on this instance for its result, on other instances
//     for a message from Redis.
//  2. The load starts a build, the handler at work, writing to a recorder (handle.go, internal/writer). The client that caused it is
//     its outlet (build.go).
//  3. Once the handler has written its header, internal/rules says whether the response may be stored. If not, the recorder streams it
//     to the client. If there is none, because it has left or got a stale page, the handler's context ends.
//  4. The outcome becomes a record (outcome.go): the response; the stale page, if that was confirmed or stands in; or a mark that the page
//     cannot be stored or that the handler panicked.
//  5. The Guard stores the record and gives it to everyone who waits. They send it, call the handler for themselves, or answer 500.
//     If an invalidation overtook the load, requests that began after the invalidation ask again (find.go).
//
// # Invalidation
//
// The page's own record is the variant that was made first. Variants name it by its ID, and are valid only while the ID is the same. So
// removing one key invalidates all variants: stored, being made, or unknown to anybody. It lasts as long as they do
// (variants.go). A soft invalidation stores the page again, as one that has just become stale (soft.go). Tags and prefixes of paths
// are tags of the Guard (tags.go), and internal/sliced does the same for the slices of large pages.
//
// Ages are measured by the wall clocks of the instances, as HTTP does.
package middleware
