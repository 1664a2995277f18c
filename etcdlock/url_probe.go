// Probing the way to the servers, for errors of opening and for Diagnose.
//
// The probes make an error come sooner or say more. No lock depends on them, and a probe that finds nothing leaves the
// library's own error as it is. They send no request of etcd, so they need no rights.

package etcdlock

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// The client library waits for a connection and says only that the time is over when there is none. So what is wrong
// with the way to the servers is found by walking it.

// probeTime bounds the look at one server, and refusalTime how long it may take to refuse a certificate. Both are short
// because they come on top of the caller's time, and servers are probed one after the other. With TLS 1.3 the client's
// handshake ends before the server has looked at its certificate, so the refusal comes in the first read.
const probeTime, refusalTime = time.Second, 200 * time.Millisecond

// probe returns what keeps a client from connecting, or nil if that is not known. It tries the servers in turn.
func probe(ctx context.Context, config *clientv3.Config) error {
	for _, endpoint := range config.Endpoints {
		if err := probeOne(ctx, endpoint, config.TLS); err != nil {
			return err
		}
	}
	return nil
}

// probeOne connects to one server, with TLS if config is not nil, and returns what goes wrong.
func probeOne(ctx context.Context, endpoint string, config *tls.Config) error {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", endpoint)
	if err != nil {
		return err
	}
	defer conn.Close()
	if config == nil {
		return nil // whether it speaks TLS cannot be seen
	}
	host, _, err := net.SplitHostPort(endpoint)
	if err != nil {
		return err
	}
	config = config.Clone()
	config.ServerName, config.NextProtos = host, []string{"h2"}
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		return err
	}
	// A server that refuses our certificate, or the lack of one, says so after the handshake.
	if err := secure.SetReadDeadline(time.Now().Add(refusalTime)); err != nil {
		return err
	}
	if _, err := secure.Read(make([]byte, 1)); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return nil
}

// nobodyListens returns an error if each server refuses connections, or has no address. That will hardly change while
// the client library tries until the time is over, so it is told at once. One server that is silent, or slow, is enough
// to let the library try: it may be about to come up. Names that do not resolve count as refused.
func nobodyListens(ctx context.Context, endpoints []string) (refused error) {
	for _, endpoint := range endpoints {
		err := probeOne(ctx, endpoint, nil)
		var slow net.Error
		switch {
		case err == nil, ctx.Err() != nil, errors.As(err, &slow) && slow.Timeout():
			return nil //nolint:nilerr // the library says how that goes on
		case refused == nil:
			refused = err
		}
	}
	return refused
}

// explained replaces an error that says only that the time is over by the reason, if that can be found.
func explained(ctx context.Context, config *clientv3.Config, err error) error {
	if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if why := probe(ctx, config); why != nil {
		return why
	}
	return err
}
