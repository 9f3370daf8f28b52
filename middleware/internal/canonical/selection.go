package canonical

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/cacheguard/go/middleware/internal/record"
	"github.com/cacheguard/go/middleware/internal/rules"
)

// shapingFields are request fields that often shape a handler's answer although no Vary names them. Attackers poison caches with them, so
// a client that sends one gets a page of its own.
var shapingFields = []string{
	"Cf-Visitor", "Cloudfront-Forwarded-Proto", "Fastly-Ssl", "Forwarded", "Front-End-Https", "X-Arr-Ssl",
	"X-Envoy-Original-Host", "X-Envoy-Original-Path", "X-Forwarded-Host", "X-Forwarded-Method", "X-Forwarded-Path",
	"X-Forwarded-Port", "X-Forwarded-Prefix", "X-Forwarded-Proto", "X-Forwarded-Protocol", "X-Forwarded-Scheme",
	"X-Forwarded-Server", "X-Forwarded-Ssl", "X-Forwarded-Uri", "X-Host", "X-Http-Host-Override", "X-Http-Method",
	"X-Http-Method-Override", "X-Method-Override", "X-Original-Forwarded-Host", "X-Original-Host", "X-Original-Method",
	"X-Original-Uri", "X-Original-Url", "X-Replaced-Path", "X-Rewrite-Url", "X-Scheme", "X-Script-Name", "X-Url-Scheme",
}

// methodFields are the shapingFields by which frameworks handle a GET as another method.
var methodFields = []string{"X-Http-Method", "X-Http-Method-Override", "X-Method-Override"}

// methodParameter is the parameter of the query by which they do the same.
const methodParameter = "_method"

// OverridesMethod reports whether a request has the methodParameter, or one of the methodFields in what Unnamed returned.
func OverridesMethod(r *http.Request, unnamed []record.Pair) bool {
	query := r.URL.RawQuery
	may := strings.Contains(query, "_") || strings.Contains(query, "%") // mostly not, and this is asked for each hit
	if may && slices.ContainsFunc(strings.FieldsFunc(query, separates), func(param string) bool { return paramName(param) == methodParameter }) {
		return true
	}
	return slices.ContainsFunc(unnamed, func(p record.Pair) bool {
		name := strings.ReplaceAll(strings.TrimPrefix(p.Name, colon), "_", "-")
		return slices.Contains(methodFields, http.CanonicalHeaderKey(name))
	})
}

// separates reports whether some framework takes a character for the end of a parameter.
func separates(c rune) bool { return c == '&' || c == ';' }

// Names for what selects a record although no Vary names it begin with a colon, which no field does.
const (
	colon           = ":"
	byAuthorization = ":authorization" // that there is one
	byCookie        = ":cookie"        // that there is one
	byHost          = ":host"          // the host that the handler sees, or that a router in front has read, if it is not the name's
	byScheme        = ":scheme"        // of the connection and of the URL, if there is TLS, or a scheme in the URL
	byCertificate   = ":certificate"   // of the client
	byURL           = ":url"           // the URL, as seen has it
	byQuery         = ":query"         // and of the query
	byClaim         = ":claim"         // what Settings.Claim returns
	byNamedCookie   = ":cookie="       // begins the name of each of Settings.Cookies
)

// keyFields are the shapingFields, with more and without less.
func keyFields(more, less []string) map[string]struct{} {
	names := make(map[string]struct{})
	for _, name := range slices.Concat(shapingFields, rules.Names(more)) {
		names[name] = struct{}{}
	}
	for _, name := range rules.Names(less) {
		delete(names, name)
	}
	return names
}

// Unnamed is what selects among the variants of a page for this canonical request although no Vary names it, in any order. Host is as it was
// sent, if a router in front has read it.
func (n *Namer) Unnamed(r *http.Request, host string) (list []record.Pair) {
	add := func(name, value string) { list = append(list, record.Pair{Name: name, Value: value}) }
	if host != "" && host != r.Host {
		add(byHost, short("="+host))
	} else if r.Host != normalHost(r.Host, "") {
		add(byHost, short(r.Host))
	}
	if r.TLS != nil || r.URL.Scheme != "" {
		add(byScheme, connection(r)+"+"+r.URL.Scheme)
	}
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		add(byCertificate, digested(string(r.TLS.PeerCertificates[0].Raw)))
	}
	for name, lines := range r.Header { // of which there are fewer than keyFields
		if n.shapes(name) {
			if value := n.normal(name, lines); value != "" {
				add(colon+name, value)
			}
		}
	}
	if len(r.Header["Authorization"]) > 0 {
		add(byAuthorization, "=")
	}
	if n.set.Guesses && len(r.Header["Cookie"]) > 0 {
		add(byCookie, "=")
	}
	url, query := seen(r)
	if url != "" {
		add(byURL, short(url))
	}
	if query != "" {
		add(byQuery, short(query))
	}
	if n.set.Claim != nil || len(n.set.Cookies) > 0 {
		list = append(list, n.chosen(r)...)
	}
	return list
}

// chosen is what selects because the user of the Cache says so.
func (n *Namer) chosen(r *http.Request) (list []record.Pair) {
	for _, name := range n.set.Cookies {
		if values := cookies(r.Header["Cookie"], name); values != "" {
			list = append(list, record.Pair{Name: byNamedCookie + name, Value: short(values)})
		}
	}
	if n.set.Claim != nil {
		if claim := n.set.Claim(r); claim != "" {
			list = append(list, record.Pair{Name: byClaim, Value: short(strconv.Quote(claim))})
		}
	}
	return list
}

// cookies are all cookies of a name as they were sent: handlers read them in more ways than one.
func cookies(lines []string, name string) (all string) {
	for _, line := range lines {
		for cookie := range strings.SplitSeq(line, ";") {
			if before, _, _ := strings.Cut(cookie, "="); strings.Trim(before, " \t") == name {
				all += ";" + strings.Trim(cookie, " \t")
			}
		}
	}
	return all
}

// shapes reports whether a field counts though no Vary names it.
func (n *Namer) shapes(name string) bool { // CGI and its descendants read _ as -
	return n.isKeyField(name) || strings.Contains(name, "_") && n.isKeyField(http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-")))
}

func (n *Namer) isKeyField(name string) bool {
	_, is := n.keyFields[name]
	return is
}

// forwardedShape is what a Forwarded field (RFC 7239) tells the handler about the request. It leaves out the addresses of clients and
// proxies, which would give every client pages of its own. An ambiguous field counts as it is.
func forwardedShape(lines []string) []string {
	whole := strings.Join(lines, ",")
	if strings.ContainsAny(whole, `\()<>{}`) {
		return lines
	}
	var elements []string
	for element := range strings.SplitSeq(whole, ",") {
		var shape []string
		for param := range strings.SplitSeq(element, ";") {
			name, value, named := strings.Cut(strings.Trim(param, " \t"), "=")
			if name = strings.ToLower(name); name != "for" && name != "by" {
				if named {
					name += "=" + value
				}
				shape = append(shape, name)
			} else if strings.Count(value, `"`)%2 > 0 {
				return lines // the quotes reach beyond the parameter
			}
		}
		shape = slices.DeleteFunc(shape, func(s string) bool { return s == "" || s == "=" })
		elements = append(elements, strings.Join(shape, ";")) // an empty one counts: handlers read the first, or the last
	}
	if shape := strings.Join(elements, ","); strings.Trim(shape, ",") != "" {
		return []string{shape}
	}
	return nil
}
