package fence

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHeader_CarriesEveryStamp(t *testing.T) {
	for _, s := range []Stamp{writer(1, "a"), reader(1<<63-1, "a.17"), writer(7, ""), writer(7, " &=;%\n,\"ä")} {
		h := http.Header{}
		SetHeader(h, writer(99, "of an attempt before"))
		SetHeader(h, s)
		if got, err := FromHeader(h); err != nil || got != s {
			t.Errorf("%v came back as %v, %v", s, got, err)
		}
	}
}

func TestFromHeader_OfWhatIsNoStamp_SaysWhy(t *testing.T) {
	tests := map[string]struct {
		values []string
		want   string
		none   bool
	}{
		"missing":       {nil, "SetHeader", true},
		"twice":         {[]string{"token=1&nonce=a", "token=2&nonce=a"}, "2 times", false},
		"empty":         {[]string{""}, "not a number", false},
		"zero":          {[]string{"token=0&nonce=a"}, "zero", false},
		"negative":      {[]string{"token=-1&nonce=a"}, "not a number", false},
		"2^63":          {[]string{"token=9223372036854775808&nonce=a"}, "2^63", false},
		"two tokens":    {[]string{"token=1&token=2"}, "2 times", false},
		"of the future": {[]string{"token=1&nonce=a&more=1"}, "more", false},
		"odd reader":    {[]string{"token=1&nonce=a&shared=yes"}, "shared", false},
		"bad escape":    {[]string{"token=1&nonce=%zz"}, "escape", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := FromHeader(http.Header{Header: test.values})
			if err == nil || s != (Stamp{}) || !strings.Contains(err.Error(), test.want) ||
				errors.Is(err, ErrNoStamp) != test.none {
				t.Errorf("got %v, %v, want an error about %q", s, err, test.want)
			}
		})
	}
}

func FuzzFromHeader(f *testing.F) {
	f.Add("token=1&nonce=a&shared=1")
	f.Add("token=%31;nonce=a")
	f.Fuzz(func(t *testing.T, value string) {
		s, err := FromHeader(http.Header{Header: []string{value}})
		if err != nil {
			return
		}
		h := http.Header{}
		SetHeader(h, s)
		if again, err := FromHeader(h); err != nil || again != s {
			t.Errorf("%q is %v, which comes back as %v, %v", value, s, again, err)
		}
	})
}

// ask sends a request with s, if it is not nil, to a server behind mw, and returns the status and what the server says.
func ask(t *testing.T, h http.Handler, path string, s *Stamp) (int, string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPut, path, nil)
	if s != nil {
		SetHeader(r.Header, *s)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func TestMiddleware_RefusesBeforeTheHandlerRuns(t *testing.T) {
	var g MemoryGuard
	ran := 0
	path := func(r *http.Request) string { return strings.TrimPrefix(r.URL.Path, "/") }
	h := Middleware(g.Check, path)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		ran++
		w.WriteHeader(http.StatusNoContent)
	}))
	old, young, zero := writer(1, "a"), writer(2, "b"), Stamp{}
	for _, step := range []struct {
		path string
		s    *Stamp
		want int
	}{
		{"/stock", &old, http.StatusNoContent},
		{"/stock", &young, http.StatusNoContent},
		{"/stock", &old, http.StatusPreconditionFailed},
		{"/other", &old, http.StatusNoContent},
		{"/stock", nil, http.StatusPreconditionRequired},
		{"/stock", &zero, http.StatusBadRequest},
		{"/", &young, http.StatusBadRequest},
	} {
		before := ran
		status, said := ask(t, h, step.path, step.s)
		if status != step.want || (ran > before) != (step.want == http.StatusNoContent) {
			t.Errorf("%s with %v: %d %s, want %d", step.path, step.s, status, said, step.want)
		}
		if status != http.StatusNoContent && !strings.HasPrefix(said, "fence: ") {
			t.Errorf("%s with %v: the answer %q does not say who refused", step.path, step.s, said)
		}
	}
}

func TestMiddleware_WhenTheCheckFails_AnswersThatItCannotTell(t *testing.T) {
	broken := func(string, Stamp) error { return errors.New("password wrong for shop@db") }
	h := Middleware(broken, func(*http.Request) string { return "r" })(http.NotFoundHandler())
	s := writer(1, "a")
	if status, said := ask(t, h, "/", &s); status != http.StatusServiceUnavailable ||
		strings.Contains(said, "password") {
		t.Errorf("got %d %s", status, said)
	}
}

func TestMiddleware_WithoutItsFunctions_Panics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("it did not panic")
		}
	}()
	Middleware(nil, func(*http.Request) string { return "r" })
}
