package cdc

import "time"

// Stats is what a feed has done since it was made, and where it stands.
type Stats struct {
	// Reading: this instance reads the log. Otherwise it stands by, or cannot reach the database: see Err.
	Reading bool

	// Behind is the age of the last moment before which everything committed is invalidated: a value in the cache may be that old. It
	// compares the database's clock with this machine's. Idle feeds learn that nothing has happened once a second, so up to about a second means nothing.
	// Until a reader has caught up with anything, it is how long it has been reading. 0 unless the instance is Reading.
	Behind time.Duration

	// BehindBytes is how much of the log is not yet invalidated, and Retained how much of it the database keeps for the feed. A feed measures them
	// every few seconds, also while it stands by. 0 for databases that do not say.
	BehindBytes, Retained int64

	// HeldBy says who keeps the database from forgetting its log, if that is not the feed: a transaction that somebody has left open. The feed is not
	// behind then, and the log grows all the same. HeldFor is how long that transaction has been open; 0: the role may not see it. Empty: nobody.
	HeldBy  string
	HeldFor time.Duration

	Rows          uint64    // of mapped tables that have changed
	Transactions  uint64    // with such rows
	Invalidations uint64    // keys and tags, each once in a batch
	Whole         uint64    // how often kinds were invalidated whole: after a TRUNCATE, or when the position was lost
	Unmapped      uint64    // rows whose keys were not known, so that the kinds of their tables were invalidated whole: see Table.Changed
	UnmappedAt    time.Time // when the keys of a row were last not known; zero: never
	Reconnects    uint64    // how often reading ended with an error

	// Err is the trouble that the feed has now. It goes on trying. nil: none.
	Err error
}
