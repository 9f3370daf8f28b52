package admin

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// expected refuses a request for a host that is not this server's, as far as anybody has said.
func (h *Handler) expected(r *http.Request) error {
	host := strings.TrimSuffix(hostOf(r.Host), ".")
	_, err := netip.ParseAddr(host)
	if err == nil || slices.ContainsFunc(append([]string{"localhost"}, h.hosts...), func(known string) bool {
		return known == "*" || host != "" && strings.EqualFold(known, host)
	}) {
		return nil
	}
	return refuse(http.StatusMisdirectedRequest,
		"this page is not for the host %q: ask for it by an address or as localhost, or name the host in Config.Hosts", cut(host))
}

// hostOf is a Host without its port.
func hostOf(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}
