package terraformlock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/webguard"
)

// MethodLock and MethodUnlock are the methods that Terraform uses unless it is configured otherwise.
const (
	MethodLock   = "LOCK"   // takes the lock of a state
	MethodUnlock = "UNLOCK" // releases it
)

// Options configures a Backend. nil means all defaults.
type Options struct {
	// Tokens are what runs must know: the name as TF_HTTP_USERNAME, the secret as TF_HTTP_PASSWORD. With none everybody
	// is let in who asks for this machine by an address, as localhost or by one of Hosts, and whom no web page has
	// sent.
	Tokens []webguard.Token
	// Hosts are names under which runs reach the server; see webguard.Options. "*" is any name, for a server behind one
	// that knows its clients and checks the Host header.
	Hosts []string

	// MaxHold is how long a run keeps its lock at most. It ends what a run that was killed has left behind, and a
	// run that takes longer. The default is without end.
	MaxHold time.Duration

	// MaxState is how many bytes a state has at most. The default is 256 MiB.
	MaxState int64

	// Logger gets a line for each unlock that is forced, before it is done. The default is slog.Default.
	Logger *slog.Logger

	_ struct{}
}

const (
	defaultMaxState = 256 << 20
	maxInfo         = 64 << 10 // of what a run says about itself
	prefix          = "terraform/"
)

var errEnding = errors.New("this server is ending")

// guarded is embedded under a name that programs do not see.
type guarded = webguard.Handler

// Backend is an http.Handler for states, behind a guard of package webguard. The path of a request, without slashes
// around it, is the state's name: words of letters, digits, "-", "_" and ".", with "/" between them. A word before a
// "/" is refused if it ends as files of states do: .tfstate, .backup, .fence or .lock. A Backend is made by [New], and
// safe for concurrent use.
//
// A state may come and go as slowly as the line is: 30 s without a byte end its request, and the server's ReadTimeout
// and WriteTimeout do not count for it.
type Backend struct {
	*guarded // answers requests

	locks  *interlock.Client
	states *folder
	o      Options
	stall  time.Duration // without a byte of a body, after which it is given up

	mu     sync.Mutex
	held   map[string]*run // by state
	closed bool
}

// run is a run of Terraform that has locked a state.
type run struct {
	id    string
	info  []byte // what it says of itself, in JSON
	lease *interlock.Lease
	since time.Time // by the clock of this process
}

// New returns a Backend that keeps states in dir, which it makes, and locks them by locks. Several servers with the
// same dir need the same locks. The locks of files are held while a state is written, and must end with their process:
// they are those of package filelock, for instance interlock.Open(ctx, "file://"+dir+"/.gates", nil). Both clients stay
// the caller's.
func New(locks, files *interlock.Client, dir string, o *Options) (*Backend, error) {
	if locks == nil || files == nil {
		return nil, errors.New("terraformlock: New needs two clients: see interlock.Open")
	}
	b := &Backend{locks: locks, stall: defaultStall, held: map[string]*run{}}
	if o != nil {
		b.o = *o
	}
	if b.o.MaxState == 0 {
		b.o.MaxState = defaultMaxState
	}
	if b.o.MaxHold < 0 || b.o.MaxState < 0 {
		return nil, errors.New("terraformlock: MaxHold and MaxState must not be negative")
	}
	if b.o.Logger == nil {
		b.o.Logger = slog.Default()
	}
	guard, err := webguard.New(&webguard.Options{Tokens: b.o.Tokens, Hosts: b.o.Hosts, Basic: true, Refuse: refuseRun})
	if err != nil {
		return nil, fmt.Errorf("terraformlock: %w", err)
	}
	b.guarded = guard.Mount(http.HandlerFunc(b.serve))
	b.states, err = openFolder(files, dir)
	return b, err
}

// refuseRun answers who is not let in, in words that Terraform shows.
func refuseRun(w http.ResponseWriter, _ *http.Request, why *webguard.Refusal) {
	hint := why.Hint
	if why.Reason == webguard.TokenNeeded {
		hint = "set TF_HTTP_USERNAME and TF_HTTP_PASSWORD to the name and the token of a line of the token file"
	}
	http.Error(w, why.Detail+": "+hint, why.Status)
}

// names are states' names. No word begins with a dot, so none leads out of the folder, and none is a file of ours.
var names = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*$`)

// taken are names with a folder that is a file of another state: that of a.tfstate/b is the state a. Some file systems
// do not tell capitals apart.
var taken = regexp.MustCompile(`(?i)\.(tfstate|backup|fence|lock)/`)

// serve answers one request that was let in.
func (b *Backend) serve(w http.ResponseWriter, r *http.Request) {
	state := strings.Trim(r.URL.Path, "/")
	if len(state) > 200 || !names.MatchString(state) {
		http.Error(w, "the path must name a state: words of letters, digits, -, _ and . with / between them",
			http.StatusBadRequest)
		return
	}
	if taken.MatchString(state) {
		http.Error(w, "no word before a / may end in .tfstate, .backup, .fence or .lock: files of other states do",
			http.StatusBadRequest)
		return
	}
	b.mu.Lock()
	closed := b.closed
	b.mu.Unlock()
	if closed {
		http.Error(w, errEnding.Error(), http.StatusServiceUnavailable)
		return
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		b.get(w, state)
	case http.MethodPost, http.MethodPut:
		b.write(w, r, state, true)
	case http.MethodDelete:
		b.write(w, r, state, false)
	case MethodLock:
		b.lock(w, r, state)
	case MethodUnlock:
		b.unlock(w, r, state)
	default:
		w.Header().Set("Allow", "GET, POST, DELETE, LOCK, UNLOCK")
		http.Error(w, "states know GET, POST, DELETE, LOCK and UNLOCK", http.StatusMethodNotAllowed)
	}
}

// readInfo reads what a run says of itself. Only the ID is understood here; a forced unlock may send nothing.
func (b *Backend) readInfo(w http.ResponseWriter, r *http.Request) (id string, info []byte, ok bool) {
	info, ok = b.readAll(w, r, maxInfo)
	if !ok || len(info) == 0 {
		return "", nil, ok
	}
	var said struct{ ID string }
	if err := json.Unmarshal(info, &said); err != nil || said.ID == "" {
		http.Error(w, "the body must be the lock info of Terraform, in JSON with an ID", http.StatusBadRequest)
		return "", nil, false
	}
	return said.ID, info, true
}

// lock takes a state's lock for a run, or says who has it. The same run may ask again, because it has not heard the
// answer.
func (b *Backend) lock(w http.ResponseWriter, r *http.Request, state string) {
	id, info, ok := b.readInfo(w, r)
	if !ok {
		return
	}
	if id == "" {
		http.Error(w, "a lock needs the lock info of Terraform as its body", http.StatusBadRequest)
		return
	}
	if now := b.holder(state); now != nil && now.id == id {
		return
	}
	lease, err := b.mutex(state, id).TryLock(r.Context())
	if err != nil {
		b.refuse(w, state, err)
		return
	}
	// What an earlier holder still has under way must not come in after this run has read the state.
	if err = b.states.raise(r.Context(), state, lease.Token(), info); err == nil {
		err = b.keep(state, &run{id, info, lease, time.Now()})
	}
	if err != nil {
		_ = lease.Unlock(context.WithoutCancel(r.Context()))
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	}
}

// mutex is a state's lock, as a run takes it.
func (b *Backend) mutex(state, id string) *interlock.Mutex {
	return b.locks.Mutex(prefix+state, &interlock.LockOptions{MaxHold: b.o.MaxHold, Label: labelOf(id)})
}

// labelOf is what operators see of a run. Its ID is whatever the run has sent, and a label must be text of a certain
// length: no ID may make the lock impossible to get. What is no letter on a terminal, but moves its cursor, is no ID.
func labelOf(id string) string {
	shown := func(r rune) rune {
		if unicode.IsControl(r) {
			return '?'
		}
		return r
	}
	return driver.CutLabel(strings.Map(shown, strings.ToValidUTF8("terraform run "+id, "?")), driver.MaxLabel)
}

// holder returns the run that has the lock from this server, or nil. One whose lock was lost has it no more.
func (b *Backend) holder(state string) *run {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.held[state]; r != nil && r.lease.Err() == nil {
		return r
	}
	return nil
}

// keep remembers who has the lock, unless the server is ending, or the lock was lost while this was under way.
func (b *Backend) keep(state string, r *run) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return errEnding
	}
	if now := b.held[state]; now != nil && now.lease.Token() > r.lease.Token() {
		return &staleError{now.lease.Token(), r.lease.Token()}
	}
	b.held[state] = r
	return nil
}

// refuse answers for a lock that was not to be had.
func (b *Backend) refuse(w http.ResponseWriter, state string, err error) {
	var held *interlock.HeldError
	switch {
	case errors.As(err, &held):
		info := b.states.info(state, held.Token)
		if info == nil {
			info, _ = json.Marshal(map[string]string{
				"ID": "", "Who": held.Client, "Info": "locked by another server or program",
			})
		}
		answerInfo(w, http.StatusLocked, info)
	case errors.Is(err, interlock.ErrLost), errors.Is(err, interlock.ErrReleased):
		http.Error(w, "the lock was lost: "+err.Error(), http.StatusConflict)
	case errors.Is(err, interlock.ErrUnavailable):
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	default:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// answerInfo says who has the lock, in the words of that run.
func answerInfo(w http.ResponseWriter, status int, info []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(info)
}
