// Package mutex is a lock.
package mutex
