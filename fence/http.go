package fence

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
)

// Stamps over HTTP: the header, and the handler in front of a resource. transport.go is the client's side.

// Header is the name of the header that carries a stamp. Its value is a query string with the keys token, nonce and,
// for a reader, shared=1: "nonce=abc&token=42". It has no secret in it, and does not prove who sent it. A service that
// does not trust its clients has to authenticate them as usual.
const Header = "Interlock-Stamp"

// ErrNoStamp says that a request has no stamp at all.
var ErrNoStamp = errors.New("there is no stamp")

// SetHeader puts s into h, for a request to a resource that has a [Middleware]. A zero stamp, which is that of a hold
// that has ended, is put there too, and refused by the other side.
func SetHeader(h http.Header, s Stamp) {
	v := url.Values{"token": {strconv.FormatUint(s.Token, 10)}, "nonce": {s.Nonce}}
	if s.Shared {
		v.Set("shared", "1")
	}
	h.Set(Header, v.Encode())
}

// FromHeader returns the stamp in h. Without one the error matches [ErrNoStamp]; a stamp that is malformed, given
// twice, or zero is another error.
func FromHeader(h http.Header) (Stamp, error) {
	values := h.Values(Header)
	switch len(values) {
	case 0:
		return Stamp{}, fmt.Errorf("fence: header %s: %w; the client sets it with fence.SetHeader", Header, ErrNoStamp)
	case 1:
	default:
		return Stamp{}, fmt.Errorf("fence: header %s: it is there %d times", Header, len(values))
	}
	s, err := parseStamp(values[0])
	if err == nil {
		err = valid(s)
	}
	if err != nil {
		return Stamp{}, fmt.Errorf("fence: header %s: %w", Header, err)
	}
	return s, nil
}

// parseStamp reads the value of the header. A key that it does not know is an error: a later version may add one that
// says that the stamp must not pass.
func parseStamp(value string) (Stamp, error) {
	fields, err := url.ParseQuery(value)
	if err != nil {
		return Stamp{}, err
	}
	for key, all := range fields {
		if len(all) != 1 {
			return Stamp{}, fmt.Errorf("%q is there %d times", key, len(all))
		}
		switch key {
		case "token", "nonce", "shared":
		default:
			return Stamp{}, fmt.Errorf("unknown key %q", key)
		}
	}
	token, err := strconv.ParseUint(fields.Get("token"), 10, 64)
	if err != nil {
		return Stamp{}, fmt.Errorf("the token %q is not a number", fields.Get("token"))
	}
	s := Stamp{Token: token, Nonce: fields.Get("nonce")}
	switch fields.Get("shared") {
	case "":
	case "1":
		s.Shared = true
	default:
		return Stamp{}, fmt.Errorf("shared is %q; it may be 1 or missing", fields.Get("shared"))
	}
	return s, nil
}

// Middleware makes handlers that refuse holders which were overtaken. Before the handler runs, it calls check with the
// request's stamp and with the name that resource gives the thing that the request is about.
//
//	412 Precondition Failed       the stamp is stale
//	428 Precondition Required     there is no stamp
//	400 Bad Request               the stamp is malformed, or resource returned ""
//	503 Service Unavailable       check could not tell: it returned another error
//
// The answer does not show what check said, only which of these it is. check gets no context; one that needs a
// request's is called in a handler of your own, with FromHeader.
//
// A check before the handler keeps out most of what is stale and registers the first touch. But it is not one step with
// what the handler does afterwards. A handler that writes must check again, with the write, in its transaction (see
// [SQLGuard.Check]). It finds the stamp with FromHeader. nil functions panic.
func Middleware(
	check func(resource string, s Stamp) error, resource func(*http.Request) string,
) func(http.Handler) http.Handler {
	if check == nil || resource == nil {
		panic("fence: Middleware needs both functions: what checks a stamp, and what names a request's resource")
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if status, text := refusal(check, resource(r), r.Header); status != 0 {
				http.Error(w, text, status)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// refusal says how a request is refused, or returns status 0.
func refusal(check func(string, Stamp) error, resource string, h http.Header) (status int, text string) {
	if resource == "" {
		return http.StatusBadRequest, "fence: the request names no resource"
	}
	s, err := FromHeader(h)
	switch {
	case errors.Is(err, ErrNoStamp):
		return http.StatusPreconditionRequired, err.Error()
	case err != nil:
		return http.StatusBadRequest, err.Error()
	}
	err = check(resource, s)
	switch {
	case err == nil:
		return 0, ""
	case errors.Is(err, ErrStale):
		return http.StatusPreconditionFailed, "fence: " + ErrStale.Error()
	default:
		return http.StatusServiceUnavailable, "fence: the stamp could not be checked"
	}
}
