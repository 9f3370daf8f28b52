// Package wrap has three caches that services wrote by hand, and beside each the same on cacheguard: a manager over an
// ORM with transactions, a cache of many keys with a second process, and a lock around a download. The ones by hand
// (…_byhand.go) are written anew after real ones, with the mistakes that those had. The tests show them.
package wrap
