package breaking

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// policy lets the page run its own script, show its own styles, and show what happened in a frame.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; " +
	"frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// toldPolicy is that of a page of package report, which has its script and its styles in itself.
const toldPolicy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; base-uri 'none'; " +
	"form-action 'none'; frame-ancestors 'self'"

// guard refuses what other sites have a browser send, as the console does.
func guard(next http.Handler) http.Handler {
	origin := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin") // the address has the secret
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		switch site := r.Header.Get("Sec-Fetch-Site"); {
		case !local(r.Host):
			http.Error(w, "the lab does not answer under the name "+r.Host, http.StatusMisdirectedRequest)
		case origin.Check(r) != nil, r.Method != http.MethodGet && (site == "cross-site" || site == "same-site"):
			http.Error(w, "another site has sent this request", http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// local reports whether a request was sent to this machine by a name that nobody can point elsewhere.
func local(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = hostport
	}
	if ip, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return ip.IsLoopback()
	}
	return strings.EqualFold(host, "localhost")
}
