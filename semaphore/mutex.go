package semaphore

import "github.com/cacheguard/go/mutex"

type (
	// Redis is what a Locker needs of a client.
	Redis = mutex.Redis

	// Hooks are the hooks of package mutex.
	Hooks = mutex.Hooks
)
