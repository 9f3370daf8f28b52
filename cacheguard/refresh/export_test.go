package refresh

// SharedAddr is the address of the server of the examples.
func SharedAddr() string { return shared.Addr() }
