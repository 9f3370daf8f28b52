// Package codec has ways to turn the values of package [cacheguard] into bytes, and to make the bytes fewer. It is a module of its
// own, so that what it needs stays out of the library's go.mod.
//
//	guard, err := cacheguard.New(rdb, cacheguard.Config{
//		Codec:       codec.MsgPack(),
//		Compression: codec.Zstd(1 << 10),
//	})
//
// # Changing them
//
// Entries say how they are compressed. [Zstd] and [S2] read each other's entries, so a fleet can change from one to the other, or
// from none, one instance after the other. An instance without Compression loads what it cannot read, and replaces it by an entry
// that is not compressed: during a change the database sees some more loads, and no instance overwrites another's entries in
// turn. To change back to none, give every instance a Compression with minBytes that no value reaches, and take it away when
// the last entries have expired.
//
// Entries do not say which Codec made them. Another Codec needs another Prefix.
package codec
