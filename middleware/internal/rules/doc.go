// Package rules is what RFC 9111 and its companions say of one response: its directives, its dates, whether and how a shared
// cache may keep it. Functions of headers alone: nothing here knows of requests under way, of keys or of Redis.
package rules
