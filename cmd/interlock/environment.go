package main

import (
	"os"
	"slices"
	"strings"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
)

// The variables that name the engine, and the file that has the engine's URL.
const (
	urlVariable     = "INTERLOCK_URL"
	urlFileVariable = "INTERLOCK_URL_FILE"
)

// jobEnvironment is ours without passwords, and what the job should know of its lock.
func (a *app) jobEnvironment(l *interlock.Lease) []string {
	return append(withoutPasswords(os.Environ(), a.urlOfFile),
		"INTERLOCK_NAME="+l.Name(),
		"INTERLOCK_TOKEN="+utoa(l.Token()),
		"INTERLOCK_OWNER="+l.Owner())
}

// withoutPasswords returns the environment for a job: a job that uses no locks needs no password for them. An
// INTERLOCK_URL that has none stays as it is, to the letter. In place of the file's name the job gets the URL in it.
func withoutPasswords(environment []string, urlOfFile func() (string, error)) []string {
	var theirs []string
	named, fromFile := false, false
	for _, entry := range environment { // all of them: an environment may name a variable twice
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

// unreadable is no URL: a command inside the job that takes it fails. Without the variable it would take its locks from
// files, and keep nobody out who takes them from the engine.
const unreadable = "unreadable"

// withoutPassword returns the URL of the same engine, for somebody who is not to know its secrets.
func withoutPassword(raw string) string {
	u, err := driver.ParseURL(raw)
	if err != nil {
		return unreadable // where its password stands cannot be told
	}
	shown, err := driver.ParseURL(u.String()) // with other words in the places of secrets
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
