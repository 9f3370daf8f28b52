module github.com/cacheguard/go/consensus/zookeeper

go 1.25.0

require (
	github.com/cacheguard/go v0.0.0
	github.com/go-zookeeper/zk v1.0.4
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/redis/go-redis/v9 v9.19.0 // indirect
	github.com/sony/gobreaker/v2 v2.4.0 // indirect
	github.com/stretchr/testify v1.12.1 // indirect
	go.uber.org/atomic v1.11.0 // indirect
)

replace github.com/cacheguard/go => ../..
