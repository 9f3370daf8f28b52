// Package rules is what RFC 9111 and its companions say about one response: its directives, dates, validators and conditions, and whether
// a shared cache may store it. Its functions depend on headers only: they know no requests under way, no keys and no Redis.
package rules
