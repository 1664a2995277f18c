package driver

import (
	"fmt"
	"net/url"
	"strings"
)

// The URL of an engine. net/url is not enough: it knows one host, and its errors show the password.

// URL is an engine's address. Unlike net/url it takes several hosts, and neither its errors nor [URL.String] ever show
// the password.
type URL struct {
	Scheme   string     // in lower case
	User     string     // decoded; empty if none
	Password string     // decoded; empty if none
	Hosts    []string   // "host" or "host:port", in the order given; none for engines without servers
	Path     string     // decoded, with its leading slash; empty if none
	Query    url.Values // decoded; see [Params] for how engines read it
}

// ParseURL splits raw into its parts. Its errors show nothing of raw but the scheme.
func ParseURL(raw string) (*URL, error) {
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok || !validScheme(scheme) {
		return nil, fmt.Errorf(
			"this is not an engine URL: it must start with a scheme such as mem://, file:// or redis://")
	}
	u := &URL{Scheme: strings.ToLower(scheme), Query: url.Values{}}
	if strings.Contains(rest, "#") {
		return nil, u.errorf("it has a #fragment; write a # inside a name or password as %%23")
	}
	rest, query, _ := strings.Cut(rest, "?")
	authority, path, hasPath := strings.Cut(rest, "/")
	if hasPath {
		decoded, err := url.PathUnescape("/" + path)
		if err != nil {
			return nil, u.errorf("its path has a bad %%-escape")
		}
		u.Path = decoded
	}
	if err := u.parseAuthority(authority); err != nil {
		return nil, err
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, u.errorf("its query has a bad %%-escape or a semicolon")
	}
	u.Query = values
	return u, nil
}

// parseAuthority reads user:password@host,host. A password may contain an @, so the last one counts.
func (u *URL) parseAuthority(authority string) error {
	hosts := authority
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		hosts = authority[at+1:]
		user, password, _ := strings.Cut(authority[:at], ":")
		var errUser, errPassword error
		u.User, errUser = url.PathUnescape(user)
		u.Password, errPassword = url.PathUnescape(password)
		if errUser != nil || errPassword != nil {
			return u.errorf("its user or password has a bad %%-escape; write a %% as %%25")
		}
	}
	if hosts == "" {
		return nil
	}
	for _, host := range strings.Split(hosts, ",") {
		if host == "" || strings.ContainsAny(host, " \t\r\n") {
			return u.errorf("its list of hosts has an empty or broken entry")
		}
		decoded, err := url.PathUnescape(host)
		if err != nil {
			return u.errorf("a host has a bad %%-escape")
		}
		u.Hosts = append(u.Hosts, decoded)
	}
	return nil
}

// errorf returns an error that shows no part of the URL but its scheme: the rest may be a misplaced password.
func (u *URL) errorf(format string, args ...any) error {
	return fmt.Errorf("the %s:// URL cannot be read: %s", u.Scheme, fmt.Sprintf(format, args...))
}

// String returns the URL with the password replaced by xxxxx, for messages and logs.
func (u *URL) String() string {
	var b strings.Builder
	b.WriteString(u.Scheme + "://")
	if u.User != "" || u.Password != "" {
		b.WriteString(strings.ReplaceAll(escape(u.User), ":", "%3A"))
		if u.Password != "" {
			b.WriteString(":xxxxx")
		}
		b.WriteByte('@')
	}
	for i, host := range u.Hosts {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(escape(host))
	}
	b.WriteString((&url.URL{Path: u.Path}).EscapedPath())
	if len(u.Query) > 0 {
		b.WriteString("?" + redactQuery(u.Query).Encode())
	}
	return b.String()
}

// escape escapes what stands before the path so that ParseURL reads the same again: a host may be any name, as in
// mem://.
var escape = strings.NewReplacer("%", "%25", "@", "%40", ",", "%2C", "/", "%2F", "?", "%3F", "#", "%23",
	" ", "%20", "\t", "%09", "\r", "%0D", "\n", "%0A").Replace

// redactQuery hides the values of keys that sound like secrets: people put them there even where no engine reads them.
func redactQuery(q url.Values) url.Values {
	shown := url.Values{}
	for key, values := range q {
		for _, v := range values {
			if lower := strings.ToLower(key); strings.Contains(lower, "pass") || strings.Contains(lower, "secret") ||
				strings.Contains(lower, "token") || strings.Contains(lower, "auth") {
				v = "xxxxx"
			}
			shown.Add(key, v)
		}
	}
	return shown
}

// validScheme reports whether s is a scheme as RFC 3986 has it.
func validScheme(s string) bool {
	for i, r := range strings.ToLower(s) {
		letter := r >= 'a' && r <= 'z'
		if !letter && (i == 0 || !(r >= '0' && r <= '9' || r == '+' || r == '-' || r == '.')) {
			return false
		}
	}
	return s != ""
}
