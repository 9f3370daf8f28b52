// Package middleware is a response cache for a server's own endpoints.
package middleware
