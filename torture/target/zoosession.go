package target

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"
)

// endZooSession ends a session of somebody else, as an operator does by JMX (the operation terminateSession of
// a connection). For that it comes as the session's client, whose password servers compute from its number,
// and says that it ends. The client itself may come back in between, for which the server closes our
// connection: then it is tried again.
func endZooSession(ctx context.Context, addr string, session int64) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for range 10 {
		if err = sayGoodbye(ctx, addr, session); err == nil || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("ending a session of ZooKeeper: %w", err)
	}
	return nil
}

// sayGoodbye tries it once.
func sayGoodbye(ctx context.Context, addr string, session int64) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	end, _ := ctx.Deadline()
	if err := conn.SetDeadline(end); err != nil {
		return err
	}
	order := binary.BigEndian
	var hello []byte
	hello = order.AppendUint32(hello, 0)               // the version of the protocol
	hello = order.AppendUint64(hello, 0)               // the newest transaction it has seen
	hello = order.AppendUint32(hello, 2000)            // the timeout, in milliseconds
	hello = order.AppendUint64(hello, uint64(session)) //nolint:gosec // as two's complement
	hello = append(framed(hello, zooPassword(session)), 0)
	goodbye := order.AppendUint32(order.AppendUint32(nil, 1), 1<<32-11) // request 1: end the session
	if _, err := conn.Write(framed(framed(nil, hello), goodbye)); err != nil {
		return err
	}
	// its length, and the version; the timeout that follows is 0 if there is no such session, which has ended meanwhile
	var answer [8]byte
	if _, err := io.ReadFull(conn, answer[:]); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, conn) // the server closes the connection, or resets it
	return nil
}

// framed appends what has its length before it.
func framed(to, what []byte) []byte {
	return append(binary.BigEndian.AppendUint32(to, uint32(len(what))), what...) //nolint:gosec // it is short
}

// zooPassword is what a server takes for the password of a session: 16 bytes of Java's generator of
// random numbers with that seed.
func zooPassword(session int64) []byte {
	const factor, mask = 0x5DEECE66D, 1<<48 - 1
	seed := (uint64(session) ^ 0xB3415C00 ^ factor) & mask //nolint:gosec // as two's complement
	var password []byte
	for range 4 {
		seed = (seed*factor + 0xB) & mask
		//nolint:gosec // the upper 32 of 48 bits
		password = binary.LittleEndian.AppendUint32(password, uint32(seed>>16))
	}
	return password
}
