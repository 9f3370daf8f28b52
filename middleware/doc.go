// Package middleware is a response cache for a server's own endpoints, on a cacheguard.Guard: it behaves as RFC 9111 asks of a
// shared cache, and has a page that many want at once made by one call of the handler, however many instances there are.
//
//	cache, err := middleware.New(guard, middleware.Config{})
//	...
//	r := chi.NewRouter()
//	r.Use(cache.Handler)
//	r.Get("/products/{id}", product) // says w.Header().Set("Cache-Control", "max-age=60, stale-while-revalidate=600")
//
// It is plain net/http; of chi it knows the patterns of routes, and that its routing contexts are used again.
//
// # What it does
//
//   - The handler's Cache-Control is honoured, or CDN-Cache-Control or Config.Target before it (RFC 9213), and Expires;
//     stale-while-revalidate and stale-if-error (RFC 5861) too. A handler that says nothing has nothing stored, unless
//     Config.DefaultTTL or Config.Heuristic are set. A lifetime that is contradictory or cannot be read is treated as over.
//   - The directives of requests are honoured, unless Config.IgnoreRequest is set.
//   - Conditional requests, HEAD and ranges are answered from stored pages. A HEAD or a range has a page that is not stored made as a
//     whole, once for all who want parts of it; if it cannot be stored, the handler is asked for the part. A stale page that has a
//     validator is validated with the handler: the handler gets If-None-Match and If-Modified-Since, and may answer 304.
//   - A page that may still be served stays when a refresh fails, or brings what cannot be stored. Config.StaleIfError has stale pages
//     stand in for a handler that fails.
//   - A successful POST, PUT, PATCH or DELETE invalidates its own URL and those that its Location and Content-Location name.
//   - Every response says how it came about, in Cache-Status (RFC 9211), and why it was not stored: detail=no-store, private,
//     authorization, set-cookie, vary, status, stale (it may never be used), no-lifetime (it does not say for how long), too-large,
//     flush, incomplete, tags (there are too many), or no-ranges (it cannot be kept in slices).
//   - While Redis does not answer, the handler is called, once for all requests of an instance that want the same.
//
// # What is not stored
//
// Responses to anything but GET and HEAD; to requests with a body, an Upgrade, If-Match or If-Unmodified-Since, with a URL of more
// than 8 KiB, or whose Connection names another field (a proxy behind would drop that); with no-store, private, Vary: *, Set-Cookie
// (but see Config.StoreSetCookie) or status 206; to requests with Authorization, unless the response has public, s-maxage or
// must-revalidate; larger than MaxBody (but see Config.SliceBytes); shorter than their Content-Length; and those of handlers that
// panic, hijack the connection, outlast the Guard's LoadTimeout, or flush without having said that the response may be stored.
//
// A page is told apart by scheme (of the URL and of the connection), Host, path and query as the client sent them (a router in front
// that takes a part of the URL away makes variants of the page), and by the fields that Vary names. A request with Authorization gets
// a page that is not its own only if that says public, s-maxage or must-revalidate; with DefaultTTL or Heuristic, one with a Cookie
// only if the page says itself how long it is fresh. Fields by which proxies and frameworks are told another host, scheme, path or
// method (X-Forwarded-Host and its like, see Config.KeyFields) are always told apart, so that a client that sends one poisons its
// own page only. Other fields that shape what a handler answers belong into its Vary.
//
// # What a handler has to know
//
// While a response may still be stored, nothing of it is sent before the handler returns: it belongs to all who wait, and the
// client that caused it may read slowly. (A Flush is kept back too, as proxies flush after each write.) The first thing that
// says otherwise (the header, more than MaxBody) sends it on its way to that client, and the others are let through to call
// the handler for themselves; that this page is such a one is remembered for Config.PassFor.
//
// The handler runs in a goroutine that is not the request's, and its context ends when nobody waits for the response any more,
// not when its own client leaves. It sees the request without conditions and Range. With stale-while-revalidate it may run after
// its request has been answered; values in the request's context have to bear that (chi's do).
//
// A handler that asks for its own page is called again if it does so in the process, with its request's context. If it does
// so over the network, it waits for itself, until the Guard's LoadTimeout.
//
// It is called by GET for a HEAD, unless chi or http.ServeMux have chosen it for HEAD before the cache was asked. Routers of another
// make that choose by the method belong behind the cache as a whole; and so do those that use their contexts again when a request
// is answered, as gin and Echo do.
//
// When LoadTimeout ends its context before its response is whole, the client gets 504.
//
// # Protocol
//
// A page is one record in the Guard: the response, and what is needed to judge it. The Guard's Fetch asks judge (lookup.go)
// whether the record may answer this request, has it replaced if not, and does so once for all instances; who may crash, pause,
// leave or lose a reply meanwhile is told there. What is new here:
//
// A request is an exchange, which makes one lookup for the page and perhaps one for a variant; a lookup that has to load makes a run
// of the handler. internal/record is what is kept, internal/rules what RFC 9111 says of one response.
//
// Where the handler's response goes. A load runs the handler for the request that started it, if that is still there (seat in
// run.go): then a response that cannot be stored is streamed to it, and the request waits for the handler's end. If its client
// has left, or was served a stale page, nobody is there to be streamed to, and the handler's writes fail when it turns
// out that the response cannot be stored. The others get the record; or the mark that there is none, and call the handler; or
// the mark that it panicked, and answer 500.
//
// Variants. The page's own record is the variant that was made first, and says which fields select. A request that it does not
// suit looks under a key of these fields' values; the record there names the id of the page's record, and counts only while
// that is the same. So removing one key invalidates all variants: those stored, those being made (whose handler was called
// after they had read the id), and those nobody knows of. The id stays when the page is made anew with the same Vary.
//
// Tags and prefixes. Each is a random value in the Guard, its version. A record has the versions that were read before the
// handler was called, and counts while they are the same. Removing a version invalidates all its records, without looking for
// them. A tag that a page has for the first time cannot have been read before; then the version for all tags
// together, which every InvalidateTags removes first, must be the same before and after (versions.go).
//
// Slices. The record of a page that is larger than MaxBody is its header, where slices are switched on: it is judged and
// replaced as any page, and its body is in slices, which are records and loads of their own (slice.go). A slice names the page's record
// by an id that an invalidation ends, and counts while that is the same, so it has neither variants nor versions. The handler is asked for
// a slice by If-Range and Range; what is not exactly that (part.go) has the page loaded anew, or marked as one that cannot be sliced.
//
// Age and freshness are judged by the wall clocks of the instances, as HTTP does.
package middleware
