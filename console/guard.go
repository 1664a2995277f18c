package console

import "net/http"

// policy lets the page run its own scripts, show its own styles and talk to this server, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// dress gives the answers what pages of a browser need beside what package webguard gives all answers.
func dress(next http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		// With no-referrer a form of the page would be sent with the origin null, and refused: over HTTP browsers do
		// not say in another way that it comes from the same site.
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		next.ServeHTTP(w, r)
	}
}
