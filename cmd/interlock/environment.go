// The environment: the variables that name the engine, and what a job gets of them. engine.go reads the first, stage.go
// passes on the second. A job gets no password. The environment of interlock itself still has it, so a job of the same
// user can find it there.

package main

import (
	"os"
	"slices"
	"strings"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
)

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
