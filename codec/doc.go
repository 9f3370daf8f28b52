// Package codec has encodings and compressions for the values of package [cacheguard]. It is a module of its own, so that its
// dependencies stay out of the library's go.mod.
//
//	guard, err := cacheguard.New(rdb, cacheguard.Config{
//		Codec:       codec.MsgPack(),
//		Compression: codec.Zstd(1 << 10),
//	})
//
// [Checked] finds values that do not come back as they were, in tests and on one instance.
//
// # Changing them
//
// Entries say how they are compressed. [Zstd] and [S2] read each other's entries, so a fleet can change from one to the other, or
// from none, one instance after another. An instance without Compression loads a value that it cannot read, and replaces it by an
// uncompressed entry. So during a change the database sees some more loads, but instances do not keep overwriting each other's
// entries. To change back to none, give every instance a Compression with minBytes that no value reaches, and remove it when the
// last compressed entries have expired.
//
// Entries do not say which Codec made them. With another Codec, a Cache needs a new CacheConfig.Version, and values without a Cache need
// another Prefix.
package codec
