// Package serve serves the web page of "interlock console". It brings net/http and crypto/tls, so only the full build
// of the command imports it.
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
)

func init() { webpage.Serve = serve }

// serve looks at all flags before it opens the engine.
func serve(ctx context.Context, o *webpage.Options) error {
	certificates, err := readCertificate(o)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return listenError(o.Listen, err)
	}
	defer listener.Close()
	tokens, err := readTokens(o, listener.Addr())
	if err != nil {
		return err
	}
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
		Audit: audit, Tokens: tokens, Hosts: o.Hosts, Logger: o.Logger, Doctor: e.Doctor,
	})
	if err != nil {
		return flagError("%v", err)
	}
	defer page.Close()
	return answer(ctx, o, listener, certificates, page)
}

// listenError says what can be done about an address that cannot be had.
func listenError(address string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("console: another program listens on %s already; choose an address with --listen, such as "+
			"127.0.0.1:0 for a free port", address)
	}
	if errors.Is(err, syscall.EACCES) {
		return fmt.Errorf("console: %w; ports below 1024 need a privilege", err)
	}
	return flagError("--listen: %v", err)
}

// answer answers requests until a signal comes or ctx ends, and then ends in good order. A second signal ends it at
// once. Without certificates it speaks HTTP.
func answer(
	ctx context.Context, o *webpage.Options, listener net.Listener, certificates []tls.Certificate,
	page *console.Console,
) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	server := &http.Server{
		Handler: page, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute,
		WriteTimeout: time.Minute, MaxHeaderBytes: 64 << 10, // the page's streams have deadlines of their own
		TLSConfig: &tls.Config{Certificates: certificates, MinVersion: tls.VersionTLS12},
		ErrorLog:  slog.NewLogLogger(o.Logger.Handler(), slog.LevelWarn),
	}
	ended := make(chan error, 1)
	go func() { // ends with Shutdown or Close below, or when nothing can be accepted any more
		if len(certificates) > 0 {
			ended <- server.ServeTLS(listener, "", "")
		} else {
			ended <- server.Serve(listener)
		}
	}()
	if err := o.Ready(listener.Addr()); err != nil {
		return errors.Join(err, server.Close())
	}
	var failed error
	select {
	case failed = <-ended:
	case <-ctx.Done():
	}
	stop()
	page.Close()
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), webpage.ClosingTime)
	defer cancel()
	if server.Shutdown(bounded) != nil {
		_ = server.Close() // what has not been answered by now is not
	}
	if failed != nil && !errors.Is(failed, http.ErrServerClosed) {
		return fmt.Errorf("console: %w", failed)
	}
	return nil
}
