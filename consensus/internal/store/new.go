package store

import "github.com/cacheguard/go/internal/run/lifecycle"

// maker is the function that makes a *consensus.Locker. Package consensus sets it as it is initialized, so that it need not export a
// function which only the packages below it can call.
var maker any

// Register sets what New calls, for package consensus.
func Register[L, C any](locker func(client any, cfg C, open func(C, *lifecycle.Life) Store) (L, error)) {
	maker = locker
}

// New returns a *consensus.Locker, as L, with the Config, as C, on the store that open makes.
func New[L, C any](client any, cfg C, open func(C, *lifecycle.Life) Store) (L, error) {
	return maker.(func(any, C, func(C, *lifecycle.Life) Store) (L, error))(client, cfg, open)
}
