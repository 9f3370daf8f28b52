// Package admin is a page for the person on call. It shows what the guards, locks and caches of pages of this process are doing, looks
// up keys and locks, and, where allowed, offers actions.
//
//	mux.Handle("/debug/cacheguard", onlyAdmins(admin.New(guard)))
//
// The page says what is wrong now. It shows for each Cache how often it is asked, its hit ratio over the last minutes, its loads, and
// which of them are slow; and also the hottest keys, the locks and permits that this process holds, and how far the feeds of package cdc are behind. A look-up shows what Guard.Inspect
// and Locker.Inspect return; for a Quorum, how many of its servers name each holder. What people may see and do is up to you: the Handler
// shows keys, names of locks, addresses of Redis, and the texts of loaders' errors to everybody who can send it a request. It shows no values and no passwords.
//
// # Who can reach it
//
// Put it behind your authentication. The Handler has none.
//
// A port of its own keeps out those whose machines cannot connect to it, and nobody else: every process and every user of a
// machine that can may look, and do what Allow permits to all. Listen on 127.0.0.1, or on an address that only your machines reach.
//
// Nor does such a port keep out a site that somebody at one of these machines visits: it can make a name of its own stand for the port's
// address (DNS rebinding), and to the browser the page is then its own. So the Handler answers only requests for an address, for
// localhost, and for the names in Config.Hosts; others get status 421. A proxy in front of it has to check names itself if it changes
// the Host of requests.
//
// # Where it can be
//
// Everything is at one URL, which can be any: under a path of any router, with or without a slash at the end, and behind a proxy that
// changes the path. All other requests of the page use its query:
//
//	GET  ?view=data                  all that the page shows, as JSON
//	GET  ?view=key&guard=0&key=K     a look-up, by the number of the Guard
//	GET  ?view=lock&locker=0&name=N  the same for a lock
//	POST ?do=catch-up&feed=F         answers when the feed F has caught up, for cacheguardctl; it does nothing to the cache
//	POST ?do=ACTION                  with a JSON object, for the page alone: it needs the page's token
//
// # Actions
//
// Without Config.Allow the page only reads. An action is a POST that comes from the page itself: from the same origin (as
// http.CrossOriginProtection has it) and with a token that the page has and other sites cannot read, as long as their names are not
// taken for the page's: see Config.Hosts. A token belongs to a process; behind
// a load balancer that sends each request elsewhere, an action may have to be tried again.
//
// # What it costs
//
// From New on, each Get of a Guard costs some nanoseconds more, because its answer is counted and one key in 16 is sampled; a
// load costs some hundreds more. There is no goroutine. Samples are taken while somebody looks, at most every two seconds, and
// the last 90 are kept. If several people look at once, the data is made once.
package admin
