package postgres_test

import (
	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/redistest"
)

func redisOfExamples() (*redis.Client, func(), error) {
	server, stop, err := redistest.StartForMain()
	if err != nil {
		return nil, nil, err
	}
	return redis.NewClient(&redis.Options{Addr: server.Addr()}), stop, nil
}
