// Package serve serves what "interlock console" and "interlock serve" offer over HTTP. It brings net/http and
// crypto/tls, so only the full build of the command imports it.
package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	"github.com/interlock-go/interlock/cmd/interlock/internal/webpage"
	"github.com/interlock-go/interlock/console"
	"github.com/interlock-go/interlock/webguard"
)

// init makes the command a full build: without this package its functions stay nil.
func init() {
	webpage.Serve, webpage.ServeStates, webpage.ServeLocks = servePage, serveStates, serveLocks
}

// servePage looks at all flags before it opens the engine.
func servePage(ctx context.Context, o *webpage.Options) error {
	h, err := listen(ctx, &o.Server)
	if err != nil {
		return err
	}
	defer h.listener.Close()
	// Files and the port come before the engine: a mistake in a flag should not cost a connection.
	audit, err := openAudit(o)
	if err != nil {
		return err
	}
	defer audit.Close()
	e, err := o.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = e.Close() }()
	page, err := console.New(e.Client, &console.Options{
		URL: e.URL, Prefix: o.Prefix, Interval: o.Interval, Timeout: o.Timeout, AllowBreak: o.AllowBreak,
		Audit: audit, Tokens: h.tokens, Hosts: o.Hosts, Logger: o.Logger, Doctor: e.Doctor,
	})
	if err != nil {
		return flagError("%v", err)
	}
	defer page.Close()
	return h.answer(ctx, page, page.Close)
}

// host is an address to answer at, and who may ask there.
type host struct {
	o            *webpage.Server
	listener     net.Listener
	certificates []tls.Certificate
	tokens       []webguard.Token
}

// listen looks at the flags that all servers have, and listens. After an error nothing listens.
func listen(ctx context.Context, o *webpage.Server) (*host, error) {
	certificates, err := readCertificate(o)
	if err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return nil, listenError(o, err)
	}
	tokens, err := readTokens(o, listener.Addr())
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return &host{o, listener, certificates, tokens}, nil
}

// listenError says what can be done about an address that cannot be used.
func listenError(o *webpage.Server, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s: another program listens on %s already; choose an address with --listen, such as "+
			"127.0.0.1:0 for a free port", o.Name, o.Listen)
	}
	if errors.Is(err, syscall.EACCES) {
		return fmt.Errorf("%s: %w; ports below 1024 need a privilege", o.Name, err)
	}
	return flagError("--listen: %v", err)
}

// answer answers requests until a signal comes or ctx ends. Then it calls end, which ends streams and waits, and gives
// the requests that are under way ClosingTime: without end they would last longer than that. A second signal ends the
// process at once. Without certificates it speaks HTTP.
//
// It is the only place where the command serves something, and takes only what is behind a guard.
func (h *host) answer(ctx context.Context, handler webguard.Guarded, end func()) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second,
		IdleTimeout: 2 * time.Minute, WriteTimeout: time.Minute, // streams and states have deadlines of their own
		MaxHeaderBytes: 64 << 10,
		TLSConfig:      &tls.Config{Certificates: h.certificates, MinVersion: tls.VersionTLS12},
		ErrorLog:       slog.NewLogLogger(h.o.Logger.Handler(), slog.LevelWarn),
	}
	ended := make(chan error, 1)
	go func() { // ends with Shutdown or Close below, or when nothing can be accepted any more
		if len(h.certificates) > 0 {
			ended <- server.ServeTLS(h.listener, "", "")
		} else {
			ended <- server.Serve(h.listener)
		}
	}()
	if err := h.o.Ready(h.listener.Addr()); err != nil {
		return errors.Join(err, server.Close())
	}
	var failed error
	select {
	case failed = <-ended:
	case <-ctx.Done():
	}
	stop()
	end()
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), webpage.ClosingTime)
	defer cancel()
	if server.Shutdown(bounded) != nil {
		_ = server.Close() // what has not been answered by now is not
	}
	if failed != nil && !errors.Is(failed, http.ErrServerClosed) {
		return fmt.Errorf("%s: %w", h.o.Name, failed)
	}
	return nil
}
