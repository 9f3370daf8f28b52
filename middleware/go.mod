module github.com/cacheguard/go/middleware

go 1.25.0

require (
	github.com/cacheguard/go v0.0.0
	github.com/cacheguard/go/cacheguard/cacheguardtest v0.0.0
	github.com/cacheguard/go/memory v0.0.0
	github.com/dunglas/httpsfv v1.1.2
	github.com/go-chi/chi/v5 v5.5.0
	github.com/redis/go-redis/v9 v9.19.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/maypok86/otter/v2 v2.4.0 // indirect
	github.com/sony/gobreaker/v2 v2.4.0 // indirect
	go.uber.org/atomic v1.11.0 // indirect
)

replace github.com/cacheguard/go => ..

replace github.com/cacheguard/go/cacheguard/cacheguardtest => ../cacheguard/cacheguardtest

replace github.com/cacheguard/go/memory => ../memory
