package console

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// policy lets the page run its own scripts, show its own styles and talk to this server, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// guard refuses what other sites have a browser send, before anything else is looked at.
func (con *Console) guard(next http.Handler) http.Handler {
	origin := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		// Nothing for other sites. With no-referrer a form of the page would be sent with the origin null, and
		// refused: over HTTP browsers do not say in another way that it comes from the same site.
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-store") // files of the page say otherwise
		switch {
		case !con.knowsHost(r.Host):
			refuse(w, http.StatusMisdirectedRequest, "the console does not answer under the name "+r.Host,
				"use localhost or the address, or name it with --host")
		case fromElsewhere(r):
			refuse(w, http.StatusForbidden, "another site has sent this request", "open the console by itself")
		case origin.Check(r) != nil:
			refuse(w, http.StatusForbidden, "another site has sent this request", "open the console by itself")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// knowsHost refuses names that somebody else may have pointed at this machine, so that its page could read answers as
// if they were its own. An address cannot be pointed anywhere.
func (con *Console) knowsHost(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = hostport
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost") ||
		slices.ContainsFunc(con.opts.Hosts, func(h string) bool { return h == "*" || strings.EqualFold(h, host) })
}

// fromElsewhere reports whether another site asks for data. The answer would be hidden from it, but a check of the
// engine does something. Links to the page itself may stand anywhere.
func fromElsewhere(r *http.Request) bool {
	if !strings.HasPrefix(r.URL.Path, "/api/") {
		return false
	}
	site := r.Header.Get("Sec-Fetch-Site") // browsers send it, and scripts cannot change it
	return site == "cross-site" || site == "same-site"
}
