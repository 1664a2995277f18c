package driver

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The query of a URL, read strictly: a mistyped option must not be ignored.

// Params reads a URL's query. Every key must be one that the engine asks for, given once and well formed. Ask for all
// keys, then call Err.
type Params struct {
	url   *URL
	asked []string
	err   error
}

// Params returns a reader of u's query.
func (u *URL) Params() *Params { return &Params{url: u} }

// String returns the value of key, or def if it is absent.
func (p *Params) String(key, def string) string {
	p.asked = append(p.asked, key)
	switch values := p.url.Query[key]; len(values) {
	case 0:
		return def
	case 1:
		return values[0]
	default:
		p.fail("%s: the query key %q is given %d times", p.url.Scheme, key, len(values))
		return def
	}
}

// Duration returns the value of key as a duration such as 500ms.
func (p *Params) Duration(key string, def time.Duration) time.Duration {
	s := p.String(key, "")
	if s == "" {
		return def
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		p.fail("%s: the query key %q wants a positive duration such as 30s, not %q", p.url.Scheme, key, s)
		return def
	}
	return d
}

// Int returns the value of key as a whole number, which must be least or more.
func (p *Params) Int(key string, def, least int) int {
	s := p.String(key, "")
	if s == "" {
		return def
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < least {
		p.fail("%s: the query key %q wants a whole number of at least %d, not %q", p.url.Scheme, key, least, s)
		return def
	}
	return n
}

// Bool returns the value of key: true or false.
func (p *Params) Bool(key string, def bool) bool {
	switch s := p.String(key, ""); s {
	case "":
		return def
	case "true", "1":
		return true
	case "false", "0":
		return false
	default:
		p.fail("%s: the query key %q wants true or false, not %q", p.url.Scheme, key, s)
		return def
	}
}

// Err returns the first fault: a malformed value, or a key that nobody asked for.
func (p *Params) Err() error {
	if p.err != nil {
		return p.err
	}
	slices.Sort(p.asked)
	unknown := make([]string, 0, len(p.url.Query))
	for key := range p.url.Query {
		if !slices.Contains(p.asked, key) {
			unknown = append(unknown, key)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	slices.Sort(unknown)
	if len(p.asked) == 0 {
		return fmt.Errorf("%s: unknown query key %q: this engine takes none", p.url.Scheme, unknown[0])
	}
	return fmt.Errorf("%s: unknown query key %q: this engine takes %s",
		p.url.Scheme, unknown[0], strings.Join(p.asked, ", "))
}

// fail keeps the first fault.
func (p *Params) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}
