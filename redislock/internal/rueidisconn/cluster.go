// A Cluster: which node has which slot. conn.go asks when it does not know the owner, call.go reports redirects, and
// node.go asks whether a silent node still has slots.

package rueidisconn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redislock/conn"
	"github.com/redis/rueidis"
)

const (
	// tableTime bounds the question for the table of slots. tableHedge is how long one node may take before the next is
	// asked too: a node that hangs must not hold up the search for its successor.
	tableTime, tableHedge = 5 * time.Second, 100 * time.Millisecond
)

// tableRefresh is one question for the table of slots. Goroutines that want a table meanwhile share it: in a failover
// all of them do.
type tableRefresh struct {
	done chan struct{} // closed at the end
	err  error         // set before done is closed
}

// refresh reads the table of slots anew. It blocks until that is done, or ctx ends; the question then goes on for the
// others.
func (c *Conn) refresh(ctx context.Context) error {
	r := c.refreshment()
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// refreshment returns the question that is under way, or starts one.
func (c *Conn) refreshment() *tableRefresh {
	c.mu.Lock()
	r := c.refreshing
	mine := r == nil
	if mine {
		r = &tableRefresh{done: make(chan struct{})}
		c.refreshing = r
	}
	c.mu.Unlock()
	if mine && !c.spawn(func() { c.runRefresh(r) }) { // ends after tableTime, or with c.base
		c.refreshed(r, driver.ErrClosed)
	}
	return r
}

// runRefresh asks and applies the answer. It runs in a goroutine of its own, because its askers may leave.
func (c *Conn) runRefresh(r *tableRefresh) {
	ctx, cancel := context.WithTimeout(c.base, tableTime)
	defer cancel()
	table, err := c.readTable(ctx)
	if err == nil {
		c.apply(table)
	}
	c.refreshed(r, err)
}

// refreshed ends the question. First it makes room for the next one: whoever comes later must not get an old answer.
func (c *Conn) refreshed(r *tableRefresh, err error) {
	c.mu.Lock()
	c.refreshing = nil
	c.mu.Unlock()
	r.err = err
	close(r.done)
}

// slotRange is a range of slots, both ends included, and the address of their owner.
type slotRange struct {
	first, last int64
	owner       string
}

// readTable asks one node after the other until one has answered. It asks the next one also if the last takes longer
// than tableHedge.
func (c *Conn) readTable(ctx context.Context) ([]slotRange, error) {
	type result struct {
		table []slotRange
		err   error
	}
	nodes := c.client.Nodes()
	results := make(chan result, len(nodes)) // buffered, so that the slow ones end
	hedge := time.NewTicker(tableHedge)
	defer hedge.Stop()
	err := errors.New("the client knows no node of the Cluster")
	waiting := slices.Collect(maps.Keys(nodes)) // in random order, as maps are: not all clients ask the same node
	for running := 0; running > 0 || len(waiting) > 0; {
		if len(waiting) > 0 {
			addr := waiting[0]
			waiting = waiting[1:]
			running++
			go func() { // ends with ctx, or when rueidis gives up connecting
				table, err := askTable(ctx, addr, nodes[addr])
				results <- result{table, err}
			}()
		}
		select {
		// An error makes room for the next node at once; so does the tick.
		case r := <-results:
			running--
			if r.err == nil {
				return r.table, nil
			}
			err = r.err
		case <-hedge.C:
		case <-ctx.Done():
			return nil, errors.Join(err, ctx.Err())
		}
	}
	return nil, fmt.Errorf("no node knows the table of slots: %w", err)
}

// askTable asks a node. All versions understand CLUSTER SLOTS; its successor CLUSTER SHARDS is wrong after a failover
// in Redis 7.
func askTable(ctx context.Context, addr string, client rueidis.Client) ([]slotRange, error) {
	rows, err := client.Do(ctx, client.B().Arbitrary("CLUSTER", "SLOTS").Build()).ToArray()
	if err != nil {
		return nil, err
	}
	table := make([]slotRange, 0, len(rows))
	for i := range rows {
		r, err := readRange(&rows[i], addr)
		if err != nil {
			return nil, err
		}
		table = append(table, r)
	}
	// A node that has not joined its Cluster yet answers with an empty table.
	if len(table) == 0 {
		return nil, conn.ErrNoOwner
	}
	return table, nil
}

// readRange reads one range of slots: first, last, owner, replicas. from is the address under which we asked.
func readRange(row *rueidis.RedisMessage, from string) (r slotRange, err error) {
	fields, err := row.ToArray()
	if err != nil {
		return r, err
	}
	if len(fields) < 3 {
		return r, errors.New("CLUSTER SLOTS: a range without an owner")
	}
	owner, err := fields[2].ToArray()
	if err != nil {
		return r, err
	}
	if len(owner) < 2 {
		return r, errors.New("CLUSTER SLOTS: an owner without an address")
	}
	first, err1 := fields[0].AsInt64()
	last, err2 := fields[1].AsInt64()
	port, err3 := owner[1].AsInt64()
	host, err := owner[0].ToString()
	// The node does not know its own name: it is reachable by the name that we called it by.
	if err != nil || host == "" {
		host, _, err = net.SplitHostPort(from)
	}
	return slotRange{
		first, last, net.JoinHostPort(host, strconv.FormatInt(port, 10)),
	}, errors.Join(err, err1, err2, err3)
}

// apply stores a table. Slots that are not in it have no owner. It is not one atomic step: a call meanwhile may use an
// old owner, and is redirected.
func (c *Conn) apply(table []slotRange) {
	var owners [conn.Slots]*node
	for _, r := range table {
		// The numbers come from a server, and the array has a place for each slot and no others.
		first, last := max(r.first, 0), min(r.last, conn.Slots-1)
		if first > last {
			continue
		}
		n := c.nodeAt(r.owner, uint16(first))
		for slot := first; slot <= last; slot++ {
			owners[slot] = n
		}
	}
	for slot, n := range owners {
		c.owners[slot].Store(n)
	}
}

// moved stores one node's word that another owns a slot. A whole table is asked for only if there is no owner.
func (c *Conn) moved(slot uint16, addr string) { c.owners[slot].Store(c.nodeAt(addr, slot)) }

// nodeAt returns the node with the given address, and makes it if it is new. slot is one that it is said to own; see
// introduce.
func (c *Conn) nodeAt(addr string, slot uint16) *node {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.nodes[addr]
	if n == nil {
		n = newNode(c, addr)
		c.nodes[addr] = n
	}
	n.slot.Store(uint32(slot))
	return n
}

// owns reports whether a node has any slot. It looks at all 16,384, so it is for nodes in trouble only.
func (c *Conn) owns(n *node) bool {
	for i := range c.owners {
		if c.owners[i].Load() == n {
			return true
		}
	}
	return false
}

// forget removes a node that has no slot and does not answer, so that its keeper can end.
func (c *Conn) forget(n *node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.nodes[n.addr] == n {
		delete(c.nodes, n.addr)
	}
}

// known returns the nodes that there are. Outside of a Cluster that is the primary.
func (c *Conn) known() []*node {
	if !c.cluster {
		return []*node{c.only}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.nodes))
}

// introduce returns rueidis's client of the node with the given address. rueidis may not have heard of a node that
// another node has named to us. So a key of the slot is asked for through rueidis, which is redirected in the same way
// and learns of the node.
func (c *Conn) introduce(ctx context.Context, addr string, slot uint16) (rueidis.Client, error) {
	if client := c.client.Nodes()[addr]; client != nil {
		return client, nil
	}
	// A key of ours, because the user may have no right to others.
	ask := c.client.B().Get().Key(c.channel + ":{" + conn.Tag(slot) + "}").Build()
	_, err := within(ctx, func() (rueidis.RedisResult, error) { return c.client.Do(ctx, ask), nil })
	if client := c.client.Nodes()[addr]; client != nil {
		return client, nil
	}
	return nil, fmt.Errorf("the client does not know the node %s: %w", addr, errors.Join(conn.ErrStranger, err))
}
