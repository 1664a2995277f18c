// interlock console: the web page with the engine's locks. The page itself is in internal/webpage, which only the full
// build can serve; this file has the flags, the engine and what is printed. serve.go does the same for the HTTP
// interface. net/http is not imported here: it would be almost a third of what the light build compiles
// (docs/rationale.md, The console).

package main

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/interlock-go/interlock/cmd/interlock/internal/webpage"
	"github.com/interlock-go/interlock/console/board"
	"github.com/spf13/cobra"
)

// Most of it is about access: every user of the machine reaches a page on loopback, and so do other sites through a
// browser.
const consoleLong = `Serve a web page that shows the engine's locks while they change: who holds them, who waits, who
waits for whom, and what has happened. The console asks the engine every --interval while a
browser shows the page, and not at all otherwise.

The default address accepts connections from this machine only, and needs no token. Every other
address requires --token-file: a file with lines NAME:TOKEN that only its owner may read (mode
600). A token has at least 16 bytes. Without --tls-cert and --tls-key, tokens are sent
unencrypted. Browsers reach the page by localhost or an IP address; other names of this machine
must be given with --host.

Visitors can end holds only with --allow-break. The console then writes each attempt as a line
of JSON to --audit-file, or to stderr.`

// consoleCommand describes console. The light build has the command too, so that it can say which build serves the
// page.
func (a *app) consoleCommand() *cobra.Command {
	o := webpage.Options{Server: webpage.Server{Name: "console"}, Interval: board.DefaultInterval}
	cmd := &cobra.Command{
		Use:     "console",
		Short:   "Serve a web page that shows locks while they change",
		Long:    consoleLong + aboutNoPage("console"),
		GroupID: "look",
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.console(cmd.Context(), &o) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Prefix, "prefix", "", "only locks whose names start with this")
	flags.Var(durationOf(&o.Interval, board.DefaultInterval), "interval", "pause between two requests to the engine")
	flags.BoolVar(&o.AllowBreak, "allow-break", false, "allow visitors to end holds")
	flags.StringVar(&o.AuditFile, "audit-file", "",
		"file to which each attempt to end a hold appends a line (default stderr)")
	serverFlags(cmd, &o.Server, "127.0.0.1:7070")
	return cmd
}

// aboutNoPage is what the help of a command adds in a build that serves nothing.
func aboutNoPage(command string) string {
	// The help says it too, so that nobody tries the flags first.
	if webpage.Serve != nil {
		return ""
	}
	return "\n\nThis is the light build, which has no " + command + ". The full command has it:\n  " + howToGetAll
}

// console serves until a signal comes or ctx ends. Mistakes in the flags are told before the engine is asked.
//
// Ready and Open are functions, so that the page's package needs neither cobra nor the command's flags.
func (a *app) console(ctx context.Context, o *webpage.Options) error {
	if err := checkInterval(o.Interval); err != nil {
		return err
	}
	// This comes after the check of the flags, so that both builds say the same of a wrong interval.
	if webpage.Serve == nil {
		return usage("%s", onlyFull("console"))
	}
	o.Timeout, o.Logger, o.Stderr, o.Open = a.timeout, a.engineWarnings(), lines{a}, a.consoleEngine
	o.Ready = func(address net.Addr) error { return a.sayAddress(&o.Server, "console", address) }
	err := webpage.Serve(ctx, o)
	// Package serve reads the token file and listens, so it finds what is wrong with those flags.
	var wrong webpage.FlagError
	if errors.As(err, &wrong) {
		return usage("%v", wrong)
	}
	return err
}

// consoleEngine opens the engine that the page shows. It is called once, when the flags have been found good.
//
// Mistakes in the flags are told before a connection is made, and a console that cannot listen makes none.
func (a *app) consoleEngine(ctx context.Context) (*webpage.Engine, error) {
	e, err := a.openToLook(ctx)
	if err != nil {
		return nil, err
	}
	doctor := func(ctx context.Context) (any, error) {
		ctx, cancel := a.within(ctx) // for all checks together, as in interlock doctor
		defer cancel()
		// A new one for each request of the page: findings are of the moment.
		x := newExamination(e.url)
		if makesByOpening(e.url) { // opened to look; whether a lock can be tried may change while the page is shown
			err := a.examineAnew(ctx, x)
			return x.so(), err
		}
		a.examineOpen(ctx, x, e, defaultLease)
		return x.so(), nil
	}
	return &webpage.Engine{Client: e.client, URL: e.url.String(), Doctor: doctor, Close: e.close}, nil
}

// lines is stderr for whole lines, which do not mix with what the command says.
type lines struct{ *app }

// Write writes one line.
func (l lines) Write(line []byte) (int, error) {
	l.saying.Lock()
	defer l.saying.Unlock()
	return l.stderr.Write(line)
}

// consoleObject is what console prints for programs when it serves. A script that gave port 0 reads the address here.
type consoleObject struct {
	SchemaVersion int    `json:"schemaVersion"`
	URL           string `json:"url"`
}

// sayAddress prints where what is served can be reached, by the first of its hosts if there is one. It is called when
// the port is known, which for port 0 the system has chosen.
//
// The address is a result, so it goes to stdout: a script reads the first line and knows that the console listens.
func (a *app) sayAddress(o *webpage.Server, what string, address net.Addr) error {
	scheme := "http"
	if o.TLS() {
		scheme = "https"
	}
	host, port, err := net.SplitHostPort(address.String())
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); ip.IsUnspecified() { // every address of this machine, so one that works here is named
		// 0.0.0.0 and :: are no addresses to open in a browser.
		host = "localhost"
		if len(o.Hosts) > 0 {
			host = o.Hosts[0]
		}
	}
	// JoinHostPort puts an IPv6 address in brackets.
	url := scheme + "://" + net.JoinHostPort(host, port) + "/"
	if a.output == asJSON {
		return a.printJSON(consoleObject{schemaVersion, url})
	}
	// On loopback the tokens do not leave the machine.
	if !o.TLS() && o.TokenFile != "" && !webpage.Loopback(address) {
		a.say("warning: tokens travel in the clear; give --tls-cert and --tls-key, or let a proxy do it")
	}
	_, err = fmt.Fprintf(a.stdout, "%s: %s (Ctrl-C ends it)\n", what, url)
	return err
}
