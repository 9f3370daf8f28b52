module github.com/cacheguard/go/bench

go 1.26.0

require github.com/cacheguard/go v0.0.0

replace github.com/cacheguard/go => ../
