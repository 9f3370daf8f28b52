//go:build go1.26

package canonical

import "crypto/tls"

// settleRetry gives every connection one form of what Go tells since 1.26: whether the client had to say hello again.
func settleRetry(s *tls.ConnectionState) { s.HelloRetryRequest = false }
