package distance

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"time"

	"github.com/interlock-go/interlock/bench/stats"
)

// Probe measures round trips to a Redis, by a request that does nothing and without any library: what nobody can do
// better.
type Probe struct {
	conn    net.Conn
	answers *bufio.Reader
}

// patience is how long a round trip may take.
const patience = 10 * time.Second

// Dial connects to the Redis at addr.
func Dial(ctx context.Context, addr string) (*Probe, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &Probe{conn, bufio.NewReader(conn)}, nil
}

// Trip makes a round trip and returns its nanoseconds.
func (p *Probe) Trip() (float64, error) {
	at := time.Now()
	if err := p.conn.SetDeadline(at.Add(patience)); err != nil {
		return 0, err
	}
	if _, err := p.conn.Write([]byte("PING\r\n")); err != nil {
		return 0, err
	}
	line, err := p.answers.ReadString('\n')
	if err == nil && line != "+PONG\r\n" {
		err = fmt.Errorf("PING is answered %q", line)
	}
	return float64(time.Since(at)), err
}

// Close ends the connection.
func (p *Probe) Close() error { return p.conn.Close() }

// asked is how often RoundTrip asks, and how long at most.
const (
	asked    = 51
	askedFor = time.Second
)

// RoundTrip returns how many nanoseconds a round trip to the Redis at addr takes: the median of some, after the first
// few.
func RoundTrip(ctx context.Context, addr string) (float64, error) {
	p, err := Dial(ctx, addr)
	if err != nil {
		return 0, err
	}
	defer p.Close()
	const warm = 3
	var each []float64
	for begin := time.Now(); len(each) <= warm || len(each) < asked && time.Since(begin) < askedFor; {
		ns, err := p.Trip()
		if err != nil {
			return 0, err
		}
		each = append(each, ns)
	}
	return stats.Quantile(each[warm:], 0.5), nil
}
