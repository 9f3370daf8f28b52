//go:build !go1.26

package canonical

import "crypto/tls"

func settleRetry(*tls.ConnectionState) {}
