// From the flag and the environment to an open engine, and what engines log, as lines on stderr. Every command that
// asks an engine comes here first; version.go has the schemes of this build. A job gets no password in its
// environment. The environment of interlock itself still has it, so a job of the same user can find it there.

package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
)

// engine is an open engine: the driver, and the client on top of it. Commands that take locks for a job use the client,
// which renews them; those that work with handles or lists use the driver.
//
// Opening makes both, because a client needs a driver and the command does not know yet which of the two it will ask.
type engine struct {
	url    *driver.URL
	driver driver.Driver
	client *interlock.Client

	onlyLooks string // why no lock can be taken for trial; "" if one can
}

// open opens the engine that the flag, the environment or the default names. opts may be nil.
func (a *app) open(ctx context.Context, opts *interlock.Options) (*engine, error) {
	raw, err := a.engineURL()
	if err != nil {
		return nil, err
	}
	return a.openURL(ctx, raw, opts)
}

// openToLook is open for commands that take no lock. On files and in SQL databases they need the right to read alone,
// and make nothing.
//
// It warns of a folder that the user has named and that is not there: the empty list of a mistyped one would look as if
// no lock was held. The default folder comes with the first lock.
func (a *app) openToLook(ctx context.Context) (*engine, error) {
	raw, err := a.engineURL()
	if err != nil {
		return nil, err
	}
	u, err := parseEngineURL(raw)
	if err != nil {
		return nil, err
	}
	if isMissing(u) && a.namesEngine() {
		a.say("warning: there is no folder %s; is the URL right? The first lock makes the folder", u.Path)
	}
	return a.openLooking(ctx, u, raw, nil)
}

// makesByOpening reports whether the engine of a URL makes something when it is opened, a folder or tables, unless its
// URL says readonly=true.
func makesByOpening(u *driver.URL) bool {
	return slices.Contains([]string{"file", "postgres", "mysql"}, u.Scheme)
}

// openLooking opens an engine by which nothing is changed, and which needs no right but to read. opts may be nil.
func (a *app) openLooking(ctx context.Context, u *driver.URL, raw string, opts *interlock.Options) (*engine, error) {
	if makesByOpening(u) {
		query := maps.Clone(u.Query)
		query.Set("readonly", "true")
		address, _, _ := strings.Cut(raw, "?") // a URL that is printed hides the password
		raw = address + "?" + query.Encode()
	}
	e, err := a.openURL(ctx, raw, opts)
	var failed *openFailedError
	switch {
	case err == nil:
		e.url = u // as the user knows it
	case errors.As(err, &failed):
		failed.url = u
	}
	return e, err
}

// isMissing reports whether a URL names a folder that is not there.
func isMissing(u *driver.URL) bool {
	if u.Scheme != "file" || u.Path == "" {
		return false
	}
	_, err := os.Stat(u.Path)
	return errors.Is(err, fs.ErrNotExist)
}

// namesEngine reports whether the user has named the engine, by the flag or a variable. Otherwise it is the default.
func (a *app) namesEngine() bool {
	return a.url != "" || a.getenv(urlVariable) != "" || a.getenv(urlFileVariable) != ""
}

// openURL opens one engine within --timeout. It returns wrong use for a URL that is none, and an error that matches
// interlock.ErrUnavailable if the engine is out of reach.
//
// --timeout bounds the opening too: an address that swallows packets would otherwise hold the command for minutes,
// until the kernel gives up.
func (a *app) openURL(ctx context.Context, raw string, opts *interlock.Options) (*engine, error) {
	u, err := parseEngineURL(raw)
	if err != nil {
		return nil, err
	}
	// Zero is refused, because some would read it as "no limit" and others as "no time".
	if a.timeout <= 0 {
		return nil, usage("--timeout %v must be positive", a.timeout)
	}
	if opts == nil {
		opts = &interlock.Options{}
	}
	// A command that is done should not wait long for a server that is gone.
	opts.CloseTimeout, opts.Logger = min(a.timeout, maxCloseTimeout), a.clientWarnings()
	ctx, cancel := a.within(ctx)
	defer cancel()
	d, err := driver.DefaultMux.Open(ctx, raw, driver.Config{
		Lease: leaseOf(opts), Client: clientName(os.Getpid()), Logger: a.engineWarnings(),
	})
	if err != nil {
		return nil, openError(u, explained(ctx, err))
	}
	c, err := interlock.New(d, opts)
	if err != nil {
		return nil, errors.Join(usage("%s", message(err)), d.Close()) // only options can be wrong
	}
	return &engine{url: u, driver: d, client: c}, nil
}

// close gives everything back: first the holds, then the connections that this needs.
//
// The order matters: the client gives holds back through the driver.
func (e *engine) close() error {
	return errors.Join(e.client.Close(), e.driver.Close())
}

// urlFlag is the value of --url. It must not be empty, as it would be from a script's variable that is not set: the
// locks would then be files of this machine, and keep out nobody who locks on a server.
//
// An empty INTERLOCK_URL is accepted all the same: units and container files set variables to nothing to unset them.
type urlFlag string

// Set accepts what is not empty. Whether it is a URL is looked at when the engine is opened.
func (f *urlFlag) Set(s string) error {
	if s == "" {
		return errors.New("the URL is empty; name an engine, such as file:///var/lib/app/locks, or leave it away: " +
			"then INTERLOCK_URL or INTERLOCK_URL_FILE counts, and without them files in the user's state folder")
	}
	*f = urlFlag(s)
	return nil
}

// String returns the URL. It, Set and Type make a urlFlag a flag.
func (f *urlFlag) String() string { return string(*f) }

// Type names the value in help texts.
func (f *urlFlag) Type() string { return "string" }

// engineURL returns the URL of the flag, or else of the environment, or else the default. An empty variable counts as
// unset. Two variables that are both set are wrong use, because either may be the one that was forgotten.
//
// With --url neither variable is looked at.
func (a *app) engineURL() (string, error) {
	if a.url != "" {
		return a.url, nil
	}
	raw, file := a.getenv(urlVariable), a.getenv(urlFileVariable)
	switch {
	// A silent choice could be another engine than the other hosts use. Then the lock excludes nobody there.
	case raw != "" && file != "":
		return "", usage("%s and %s are both set; unset one of them, or give --url", urlVariable, urlFileVariable)
	case raw != "":
		return raw, nil
	case file != "":
		return a.urlOfFile()
	}
	return a.defaultURL()
}

// maxURLFile is more than any URL has. It is a bound because a path such as /dev/zero has no end.
const maxURLFile = 64 << 10

// readURL reads the URL of an engine from a file, which is for passwords: it can be kept from other users, and from
// jobs. It may be a pipe, so it is read once.
//
// Everybody on the machine can list the arguments of a process, and the same user its environment; a file of systemd's
// LoadCredential has rights of its own (docs/packaging.md).
func readURL(path string, say func(string, ...any)) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", usage("%s: %v", urlFileVariable, err)
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxURLFile+1))
	raw := strings.TrimSpace(string(content))
	switch {
	case err != nil:
		return "", usage("%s: %v", urlFileVariable, err)
	case raw == "":
		return "", usage("%s: %s is empty; it should have one line, the URL of an engine", urlFileVariable, path)
	// A second line is refused rather than left out: it may be the URL that was meant.
	case len(content) > maxURLFile, strings.ContainsAny(raw, "\r\n"):
		return "", usage(
			"%s: %s has more than one line; it should have one, the URL of an engine", urlFileVariable, path)
	}
	// A pipe and a file without a password are nobody's secret.
	info, err := f.Stat()
	if u, wrong := driver.ParseURL(raw); err == nil && wrong == nil && u.Password != "" && info.Mode().IsRegular() &&
		info.Mode().Perm()&0o007 != 0 {
		say("warning: %s: everybody on this machine may open %s (mode %04o), which has a password: chmod 600 it",
			urlFileVariable, path, info.Mode().Perm())
	}
	return raw, nil
}

// defaultURL is the URL of the file engine in the user's state folder. That engine makes the folder if it is not there.
//
// The state folder is the user's and survives a reboot, unlike /tmp and /run. Users who should share locks need a
// folder of their own choice, in --url.
func (a *app) defaultURL() (string, error) {
	state := a.getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) { // the XDG specification wants relative paths ignored
		home := a.getenv("HOME")
		if home == "" {
			return "", usage(
				"where are the locks? There is no --url, no INTERLOCK_URL, no INTERLOCK_URL_FILE and no HOME")
		}
		if !filepath.IsAbs(home) {
			return "", usage("where are the locks? HOME is %q, which is no absolute path; name the engine with --url",
				home)
		}
		state = filepath.Join(home, ".local", "state")
	}
	u := driver.URL{Scheme: "file", Path: filepath.Join(state, "interlock", "locks")}
	return u.String(), nil
}

// parseEngineURL refuses what is no URL, and schemes without an engine, before anything is opened.
//
// The light build lacks most schemes, so one without an engine gets a message of its own (version.go).
func parseEngineURL(raw string) (*driver.URL, error) {
	u, err := driver.ParseURL(raw)
	if err != nil {
		return nil, usage("%v", err)
	}
	if !slices.Contains(driver.DefaultMux.Schemes(), u.Scheme) {
		return nil, schemeError(u.Scheme)
	}
	return u, nil
}

// openError tells an engine that is out of reach (exit code 69) from a URL that its engine does not understand (64).
//
// An error that is not about the network, the file system or time is about the URL. Engines return those without a
// type.
func openError(u *driver.URL, err error) error {
	var network net.Error
	var path *fs.PathError
	var errno syscall.Errno
	switch {
	case errors.Is(err, interlock.ErrUnavailable), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, context.Canceled),
		errors.As(err, &network), errors.As(err, &path), errors.As(err, &errno):
		return exitWith(exitUnavailable, &openFailedError{u, err})
	}
	return usage("%v", err)
}

// openFailedError names the engine, without its password, and why it could not be opened. The URL is the parsed one,
// whose String hides the password. The raw text is never printed.
type openFailedError struct {
	url *driver.URL
	err error
}

// Error adds what to do where nobody listens, unless the engine has said so.
func (e *openFailedError) Error() string {
	s := "open " + e.url.String() + ": " + e.err.Error()
	if errors.Is(e.err, syscall.ECONNREFUSED) && !strings.Contains(s, hintRefused) {
		s += " (" + hintRefused + ")"
	}
	return s
}

// hintRefused is what engines say, too, about a refused connection.
const hintRefused = "is the address right, and does the server run?"

// Unwrap returns interlock.ErrUnavailable beside the cause, except for an engine that has refused: asking that again is
// of no use.
func (e *openFailedError) Unwrap() []error {
	if driver.Refusal(e.err) != nil {
		return []error{e.err}
	}
	return []error{interlock.ErrUnavailable, e.err}
}

// leaseOf is the lease that a client with opts asks for. A driver has to know it when it is opened: an engine with
// sessions asks for it as its timeout.
func leaseOf(opts *interlock.Options) time.Duration {
	if opts.Lease > 0 {
		return opts.Lease
	}
	return defaultLease
}

const (
	// defaultLease is the library's.
	defaultLease = 30 * time.Second
	// maxCloseTimeout is how long the command tries, at its end, to undo requests whose outcome it does not know.
	maxCloseTimeout = 5 * time.Second
)

// clientName is how operators see a process of this machine: host:pid. Other machines see the name, so it has the host.
// The library wants UTF-8, so other bytes of a host name are replaced.
func clientName(pid int) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return strings.ToValidUTF8(host, "?") + ":" + itoa(pid)
}

// The variables that name the engine, and the file that has the engine's URL. INTERLOCK_HANDLE, which scripts set, is
// read in handle.go; XDG_STATE_HOME and HOME in engine.go; TERM and NO_COLOR in top.go.
const (
	urlVariable     = "INTERLOCK_URL"
	urlFileVariable = "INTERLOCK_URL_FILE"
)

// jobEnvironment is our own environment without passwords, and with what the job should know of its lock.
//
// The token goes to the job, because only the job can show it to the resource (docs/fencing.md).
func (a *app) jobEnvironment(l *interlock.Lease) []string {
	return append(withoutPasswords(os.Environ(), a.urlOfFile),
		"INTERLOCK_NAME="+l.Name(),
		"INTERLOCK_TOKEN="+utoa(l.Token()),
		"INTERLOCK_OWNER="+l.Owner())
}

// withoutPasswords returns the environment for a job, because a job that uses no locks needs no password for them. An
// INTERLOCK_URL without a password stays as it is, to the letter. In place of the file's name the job gets the URL in
// it.
//
// The variable is not removed as a whole: an interlock inside the job would then lock files of this machine.
func withoutPasswords(environment []string, urlOfFile func() (string, error)) []string {
	var theirs []string
	named, fromFile := false, false
	for _, entry := range environment { // every entry, because an environment may name a variable twice
		name, value, _ := strings.Cut(entry, "=")
		switch {
		case name == urlVariable && value != "":
			named = true
			theirs = append(theirs, urlVariable+"="+withoutPassword(value))
		case name == urlFileVariable:
			fromFile = fromFile || value != ""
		default:
			theirs = append(theirs, entry)
		}
	}
	// Both may be set beside --url, and then INTERLOCK_URL is the one that stays. An empty one counts as unset.
	if fromFile && !named {
		raw, err := urlOfFile()
		if err != nil {
			raw = unreadable
		}
		theirs = slices.DeleteFunc(theirs, func(entry string) bool { return entry == urlVariable+"=" })
		theirs = append(theirs, urlVariable+"="+withoutPassword(raw))
	}
	return theirs
}

// unreadable is no URL, so a command inside the job that uses it fails. Without the variable it would take its locks
// from files, and keep out nobody who takes them from the engine.
const unreadable = "unreadable"

// withoutPassword returns a URL of the same engine for somebody who is not to know its secrets: which keys of the query
// are secret is known from what u.String hides.
//
// A URL that has no secret is returned as it was written, so that a job finds what its script has set.
func withoutPassword(raw string) string {
	u, err := driver.ParseURL(raw)
	if err != nil {
		return unreadable // where its password stands cannot be told
	}
	shown, err := driver.ParseURL(u.String()) // u.String has other words in the places of secrets
	if err != nil {
		return unreadable
	}
	secrets := u.Password != ""
	shown.Password = ""
	for key, values := range u.Query {
		if !slices.Equal(values, shown.Query[key]) {
			secrets = true
			delete(shown.Query, key)
		}
	}
	if !secrets {
		return raw
	}
	return shown.String()
}

// warnings is a handler for what engines and the client log: what a start-up check finds, a renewal that failed, a
// session that is lost. What the command says by itself is left out.
//
// They look like the command's own lines, because a person reads them, at a terminal or in a mail of cron.
type warnings struct {
	app   *app
	below slog.Level // the first level that is left out
	attrs []slog.Attr
}

// engineWarnings also has errors: those of checks that would refuse the engine if the URL said so.
func (a *app) engineWarnings() *slog.Logger {
	return slog.New(&warnings{app: a, below: slog.LevelError + 1})
}

// clientWarnings leaves out losses of locks, which are errors: every command that holds one says what they mean for it.
func (a *app) clientWarnings() *slog.Logger {
	return slog.New(&warnings{app: a, below: slog.LevelError})
}

// Enabled accepts warnings, and errors where they are wanted.
//
// Information, such as a new connection, would be noise in a command that runs for a second.
func (w *warnings) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && level < w.below
}

// Handle says a record on one line: its message, the error, and the rest in parentheses.
//
// The advice stands last. The page that explains it is left to doctor.
func (w *warnings) Handle(_ context.Context, r slog.Record) error {
	var why, advice, check string
	var rest []string
	add := func(attr slog.Attr) bool {
		switch value := attr.Value.String(); attr.Key {
		case "err", "error":
			why = ": " + value
		case "advice":
			advice = value
		case "check":
			check = value // the message begins with it
		case "page": // doctor says it
		default:
			rest = append(rest, attr.Key+" "+printable(value))
		}
		return true
	}
	for _, attr := range w.attrs {
		add(attr)
	}
	r.Attrs(add)
	// A finding that would refuse the engine is told always: the lock may exclude nobody.
	if check != "" && !w.app.tellsChecks && r.Level < slog.LevelError {
		return nil
	}
	text := strings.TrimPrefix(r.Message, "interlock: ") + why
	if advice != "" {
		rest = append(rest, advice)
	}
	if check != "" {
		rest = append(rest, "check=none in the URL skips this check")
	}
	if len(rest) > 0 {
		text += " (" + strings.Join(rest, ", ") + ")"
	}
	w.app.say("warning: %s", strings.ReplaceAll(text, "\n", "; "))
	return nil
}

// WithAttrs keeps attributes for all records. The slice is copied, because two loggers that are made of one would write
// into the same array.
func (w *warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	more := *w
	more.attrs = append(append([]slog.Attr{}, w.attrs...), attrs...)
	return &more
}

// WithGroup does nothing: neither engines nor the client have groups.
func (w *warnings) WithGroup(string) slog.Handler { return w }
