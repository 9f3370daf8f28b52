module github.com/cacheguard/go/proof

go 1.26.0

require (
	github.com/anishathalye/porcupine v1.3.1
	github.com/cacheguard/go v0.0.0
	github.com/cacheguard/go/memory v0.0.0
	github.com/cacheguard/go/middleware v0.0.0
	github.com/jackc/pgx/v5 v5.12.0
	github.com/redis/go-redis/v9 v9.23.0
	github.com/tetratelabs/wazero v1.12.0
	golang.org/x/sync v0.24.0
	golang.org/x/sys v0.49.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/dunglas/httpsfv v1.1.2 // indirect
	github.com/go-chi/chi/v5 v5.5.0 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	github.com/maypok86/otter/v2 v2.4.0 // indirect
	github.com/sony/gobreaker/v2 v2.4.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/text v0.43.0 // indirect
)

replace github.com/cacheguard/go => ../

replace github.com/cacheguard/go/cacheguard/cacheguardtest => ../cacheguard/cacheguardtest

replace github.com/cacheguard/go/consensus/etcd => ../consensus/etcd

replace github.com/cacheguard/go/consensus/mysql => ../consensus/mysql

replace github.com/cacheguard/go/consensus/postgres => ../consensus/postgres

replace github.com/cacheguard/go/consensus/zookeeper => ../consensus/zookeeper

replace github.com/cacheguard/go/internal/testing/rungs => ../internal/testing/rungs

replace github.com/cacheguard/go/middleware => ../middleware

replace github.com/cacheguard/go/memory => ../memory
