package webguard

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// knowsHost refuses names that somebody else may have pointed at this machine, so that its page could read answers as
// if they were its own. An address cannot be pointed anywhere. Where each request needs a token, the page would not
// know one; a session is in a cookie, which browsers send by themselves.
func (g *Guard) knowsHost(hostport string) bool {
	if len(g.tokens) > 0 && g.o.Session == nil && len(g.o.Hosts) == 0 {
		return true
	}
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = hostport
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost") ||
		slices.ContainsFunc(g.o.Hosts, func(h string) bool { return h == "*" || strings.EqualFold(h, host) })
}

// fromElsewhere reports whether a page of another site has sent the request. That such a page cannot read the answer is
// not enough: a GET costs something, and may do something. So a GET is judged as a POST is, by what a browser says of
// itself in headers that scripts cannot change, unless links may lead there.
func (g *Guard) fromElsewhere(r *http.Request) bool {
	safe := r.Method == http.MethodGet || r.Method == http.MethodHead
	if safe && g.o.Linked != nil && g.o.Linked(r) {
		return false
	}
	judged := *r
	judged.Method = http.MethodPost
	return g.origin.Check(&judged) != nil
}
