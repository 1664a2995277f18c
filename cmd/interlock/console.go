package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/interlock-go/interlock/console"
	"github.com/interlock-go/interlock/console/board"
	"github.com/interlock-go/interlock/driver"
	"github.com/spf13/cobra"
)

const consoleLong = `Serve a web page that shows the engine's locks while they change: who holds them, who waits, who waits for
whom, and what has happened. Looks every --interval while a browser shows the page, and not at all while none does.

On the default address only this machine reaches the page, and needs no token. Every other address wants --token-file: a
file with lines NAME:TOKEN that only its owner may read (mode 600). Tokens have 16 bytes at least, and travel in the clear
unless --tls-cert and --tls-key are given. Browsers reach the page by localhost or an address; other names of this machine
need --host.

The page ends no holds unless --allow-break is given. Each attempt is then written down as lines of JSON, in --audit-file
or on stderr.`

// consoleOptions are the flags of console.
type consoleOptions struct {
	listen          string
	prefix          string
	interval        time.Duration
	allowBreak      bool
	auditFile       string
	tokenFile       string
	hosts           []string
	tlsCert, tlsKey string

	tls *tls.Config // nil: none
}

func (a *app) consoleCommand() *cobra.Command {
	o := consoleOptions{interval: board.DefaultInterval}
	cmd := &cobra.Command{
		Use:     "console",
		Short:   "Serve a web page that shows locks while they change",
		Long:    consoleLong,
		GroupID: "look",
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.console(cmd.Context(), &o) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.listen, "listen", "127.0.0.1:7070", "address to listen on; port 0 takes a free one")
	flags.StringVar(&o.prefix, "prefix", "", "only locks whose names start with it")
	flags.Var(durationOf(&o.interval, board.DefaultInterval), "interval", "pause between two looks")
	flags.BoolVar(&o.allowBreak, "allow-break", false, "let visitors end holds")
	flags.StringVar(&o.auditFile, "audit-file", "", "append a line for each attempt to end a hold (default stderr)")
	flags.StringVar(&o.tokenFile, "token-file", "", "lines NAME:TOKEN; who knows none is not let in")
	flags.StringSliceVar(&o.hosts, "host", nil, "a name under which browsers reach the page")
	flags.StringVar(&o.tlsCert, "tls-cert", "", "file with the certificate, in PEM")
	flags.StringVar(&o.tlsKey, "tls-key", "", "file with its key, in PEM")
	return cmd
}

// console serves until a signal comes or ctx ends. What is wrong with the flags is told before the engine is asked.
func (a *app) console(ctx context.Context, o *consoleOptions) error {
	if o.interval <= 0 {
		return usage("--interval %v must be positive", o.interval)
	}
	if err := o.readCertificate(); err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.listen)
	if err != nil {
		return listenError(o.listen, err)
	}
	defer listener.Close()
	tokens, err := o.tokens(listener.Addr())
	if err != nil {
		return err
	}
	audit, err := a.auditWriter(o.auditFile)
	if err != nil {
		return err
	}
	defer audit.Close()
	e, err := a.open(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = e.close() }()
	page, err := console.New(e.client, &console.Options{
		URL: e.url.String(), Prefix: o.prefix, Interval: o.interval, Timeout: a.timeout, AllowBreak: o.allowBreak,
		Audit: audit, Tokens: tokens, Hosts: o.hosts, Logger: a.engineWarnings(),
		Doctor: func(ctx context.Context) (any, error) { return a.consoleDoctor(ctx, e), nil },
	})
	if err != nil {
		return usage("%v", err)
	}
	defer page.Close()
	return a.serve(ctx, o, listener, page)
}

// readCertificate reads certificate and key once: new ones need another start.
func (o *consoleOptions) readCertificate() error {
	if (o.tlsCert == "") != (o.tlsKey == "") {
		return usage("--tls-cert and --tls-key belong together")
	}
	if o.tlsCert == "" {
		return nil
	}
	certificate, err := tls.LoadX509KeyPair(o.tlsCert, o.tlsKey)
	if err != nil {
		return usage("--tls-cert, --tls-key: %v", err)
	}
	o.tls = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	return nil
}

// listenError says what can be done about an address that cannot be had.
func listenError(address string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return exitWith(exitFailed, fmt.Errorf("console: another program listens on %s already; choose an address "+
			"with --listen, such as 127.0.0.1:0 for a free port", address))
	}
	if errors.Is(err, syscall.EACCES) {
		return exitWith(exitFailed, fmt.Errorf("console: %w; ports below 1024 need a privilege", err))
	}
	return usage("--listen: %v", err)
}

// tokens reads the file of tokens. Without one only this machine may be able to reach the console.
func (o *consoleOptions) tokens(listens net.Addr) ([]console.Token, error) {
	if o.tokenFile == "" {
		if tcp, ok := listens.(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
			return nil, usage("--listen %s: other machines reach this address, so --token-file is needed", o.listen)
		}
		return nil, nil
	}
	tokens, err := console.ReadTokens(o.tokenFile)
	if err != nil {
		return nil, usage("--token-file: %v", err)
	}
	return tokens, nil
}

// auditFile is where attempts to end holds are written down.
type auditFile struct {
	*app
	file *os.File // nil: stderr
}

func (a *app) auditWriter(path string) (*auditFile, error) {
	if path == "" {
		return &auditFile{a, nil}, nil
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, usage("--audit-file: %v", err)
	}
	return &auditFile{a, file}, nil
}

// Write writes one line.
func (f *auditFile) Write(line []byte) (int, error) {
	if f.file != nil {
		return f.file.Write(line)
	}
	f.saying.Lock()
	defer f.saying.Unlock()
	return f.stderr.Write(line)
}

// Close closes the file, if it is one.
func (f *auditFile) Close() error {
	if f.file != nil {
		return f.file.Close()
	}
	return nil
}

// consoleDoctor is what the page shows of doctor.
func (a *app) consoleDoctor(ctx context.Context, e *engine) *diagnosis {
	d := &diagnosis{SchemaVersion: schemaVersion, URL: e.url.String(), Level: driver.LevelOK}
	a.examine(ctx, e, d, defaultLease)
	return d
}

// closingTime is how long requests that are under way may take when the console ends. Streams end at once.
const closingTime = 3 * time.Second

// serve answers requests until a signal comes or ctx ends, and then ends in good order. A second signal ends it at
// once.
func (a *app) serve(ctx context.Context, o *consoleOptions, listener net.Listener, page *console.Console) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	server := &http.Server{
		Handler: page, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute,
		WriteTimeout: time.Minute, MaxHeaderBytes: 64 << 10, // the page's streams have deadlines of their own
		TLSConfig: o.tls,
		ErrorLog:  slog.NewLogLogger(a.engineWarnings().Handler(), slog.LevelWarn),
	}
	ended := make(chan error, 1)
	go func() { // ends with Shutdown or Close below, or when nothing can be accepted any more
		if o.tls != nil {
			ended <- server.ServeTLS(listener, "", "")
		} else {
			ended <- server.Serve(listener)
		}
	}()
	if err := a.sayAddress(o, listener.Addr()); err != nil {
		return errors.Join(err, server.Close())
	}
	var failed error
	select {
	case failed = <-ended:
	case <-ctx.Done():
	}
	stop()
	page.Close()
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), closingTime)
	defer cancel()
	if server.Shutdown(bounded) != nil {
		_ = server.Close() // what has not been answered by now is not
	}
	if failed != nil && !errors.Is(failed, http.ErrServerClosed) {
		return exitWith(exitFailed, fmt.Errorf("console: %w", failed))
	}
	return nil
}

// consoleObject is what console prints for programs.
type consoleObject struct {
	SchemaVersion int    `json:"schemaVersion"`
	URL           string `json:"url"`
}

// sayAddress prints where the page is.
func (a *app) sayAddress(o *consoleOptions, address net.Addr) error {
	scheme := "http"
	if o.tls != nil {
		scheme = "https"
	}
	host, port, err := net.SplitHostPort(address.String())
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); ip.IsUnspecified() { // every address of this machine: name one that works here
		host = "localhost"
		if len(o.hosts) > 0 {
			host = o.hosts[0]
		}
	}
	url := scheme + "://" + net.JoinHostPort(host, port) + "/"
	if a.output == asJSON {
		return a.printJSON(consoleObject{schemaVersion, url})
	}
	if o.tls == nil && o.tokenFile != "" {
		if tcp, ok := address.(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
			a.say("warning: tokens travel in the clear; give --tls-cert and --tls-key, or let a proxy do it")
		}
	}
	_, err = fmt.Fprintf(a.stdout, "console: %s (Ctrl-C ends it)\n", url)
	return err
}
