module github.com/cacheguard/go/codec

go 1.25.0

require (
	github.com/cacheguard/go v0.0.0
	github.com/cacheguard/go/cacheguard/cacheguardtest v0.0.0
	github.com/cacheguard/go/memory v0.0.0
	github.com/klauspost/compress v1.20.1
	github.com/vmihailenco/msgpack/v5 v5.4.1
	google.golang.org/protobuf v1.36.12
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/maypok86/otter/v2 v2.4.0 // indirect
	github.com/redis/go-redis/v9 v9.19.0 // indirect
	github.com/sony/gobreaker/v2 v2.4.0 // indirect
	github.com/vmihailenco/tagparser/v2 v2.0.0 // indirect
	go.uber.org/atomic v1.11.0 // indirect
)

replace github.com/cacheguard/go => ../

replace github.com/cacheguard/go/cacheguard/cacheguardtest => ../cacheguard/cacheguardtest

replace github.com/cacheguard/go/memory => ../memory
