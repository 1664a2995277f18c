package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
)

// quicken makes the Sentinels look around more often than every second (each other) or ten (the servers). The settings
// are not written down, so that a Sentinel forgets them at its end. Before version 7.0 there are none.
func (s *SentinelRedis) quicken() {
	ctx, cancel := context.WithTimeout(context.Background(), pollOnce)
	defer cancel()
	for _, n := range up(s.sentinels) {
		// An error would show in what waits for the Sentinels, or only make it last longer.
		_, _ = n.Do(ctx, "SENTINEL", "DEBUG",
			// A replica can be chosen only if it was heard within three of these, or five of the next while the primary
			// is down, when it is asked once a second.
			"info-period", "300",
			// It must be shorter than the time after which silence is death: that begins when a Sentinel
			// first hears of a server, and so does this. With both alike, a new primary would be replaced at
			// once (seen with Redis 7.0).
			"ping-period", "600",
			// A primary that another Sentinel has just made, and has not told of yet, is made a replica again by a
			// Sentinel that takes it for one that came back, after four of these: they must be longer than a promotion
			// takes.
			"publish-period", "500", "ask-period", "100",
			// On a machine that stalls, Sentinels distrust their clock for half a minute and do nothing.
			"tilt-period", "1000",
		)
	}
}

// agreed returns the primary that all Sentinels that run name, if it says so itself.
func (s *SentinelRedis) agreed(ctx context.Context) (*RedisNode, error) {
	var primary *RedisNode
	for _, n := range up(s.sentinels) {
		named, err := s.named(ctx, n)
		if err != nil {
			return nil, err
		}
		if primary != nil && named != primary {
			return nil, fmt.Errorf("some name %s, others %s", primary.Addr(), named.Addr())
		}
		primary = named
	}
	if primary == nil {
		return nil, errors.New("no Sentinel runs")
	}
	info, err := primary.Info(ctx, "replication")
	if err != nil {
		return nil, err
	}
	return primary, expect(info, "role", "master")
}

// named returns the primary that one Sentinel names.
func (s *SentinelRedis) named(ctx context.Context, sentinel *RedisNode) (*RedisNode, error) {
	reply, err := sentinel.Do(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", sentinelName)
	if err != nil {
		return nil, err
	}
	pair, _ := reply.([]any)
	if len(pair) != 2 {
		return nil, fmt.Errorf("%s names no primary", sentinel.Addr())
	}
	addr := fmt.Sprintf("%v:%v", pair[0], pair[1])
	if n := s.At(addr); n != nil {
		return n, nil
	}
	return nil, fmt.Errorf("%s names %s, which is none of ours", sentinel.Addr(), addr)
}

func (s *SentinelRedis) ready(ctx context.Context) error {
	primary, err := s.agreed(ctx)
	if err != nil {
		return err
	}
	if err := follow(ctx, primary, others(up(s.nodes), primary)); err != nil {
		return err
	}
	for _, n := range up(s.sentinels) {
		if err := s.knows(ctx, n, primary); err != nil {
			return fmt.Errorf("sentinel %s: %w", n.Addr(), err)
		}
	}
	return nil
}

// knows returns an error unless the Sentinel sees all that run in their places, and enough Sentinels.
func (s *SentinelRedis) knows(ctx context.Context, sentinel, primary *RedisNode) error {
	masters, err := sentinelTable(ctx, sentinel, "MASTERS")
	if err != nil {
		return err
	}
	if len(masters) != 1 {
		return fmt.Errorf("it watches %d primaries", len(masters))
	}
	if err := expect(masters[0], "flags", "master"); err != nil {
		return err
	}
	replicas, err := sentinelTable(ctx, sentinel, "REPLICAS", sentinelName)
	if err != nil {
		return err
	}
	if err := s.seesFollow(replicas, primary); err != nil {
		return err
	}
	peers, err := sentinelTable(ctx, sentinel, "SENTINELS", sentinelName)
	if err != nil {
		return err
	}
	for _, peer := range others(up(s.sentinels), sentinel) {
		if _, err := sees(peers, peer, "sentinel"); err != nil {
			return err
		}
	}
	_, err = sentinel.Do(ctx, "SENTINEL", "CKQUORUM", sentinelName)
	return err
}

// seesFollow returns an error unless the table has all replicas that run, each as one of primary.
func (s *SentinelRedis) seesFollow(table []map[string]string, primary *RedisNode) error {
	for _, n := range others(up(s.nodes), primary) {
		row, err := sees(table, n, "slave")
		if err != nil {
			return err
		}
		if of := net.JoinHostPort(row["master-host"], row["master-port"]); of != primary.Addr() {
			return fmt.Errorf("%s follows %s", n.Addr(), of)
		}
		if err := expect(row, "master-link-status", "ok"); err != nil {
			return err
		}
	}
	return nil
}

// sees returns the row of n, or an error unless it is there and has no other flags than that one, such as s_down.
func sees(table []map[string]string, n *RedisNode, flags string) (map[string]string, error) {
	for _, row := range table {
		if net.JoinHostPort(row["ip"], row["port"]) == n.Addr() {
			return row, expect(row, "flags", flags)
		}
	}
	return nil, fmt.Errorf("it does not know %s", n.Addr())
}

// sentinelTable returns the answer to a command of SENTINEL that lists things with their fields.
func sentinelTable(ctx context.Context, sentinel *RedisNode, command ...string) ([]map[string]string, error) {
	reply, err := sentinel.Do(ctx, append([]string{"SENTINEL"}, command...)...)
	if err != nil {
		return nil, err
	}
	rows, _ := reply.([]any)
	table := make([]map[string]string, len(rows))
	for i, row := range rows {
		table[i] = map[string]string{}
		fields, _ := row.([]any)
		for j := 0; j+1 < len(fields); j += 2 {
			table[i][fmt.Sprint(fields[j])] = fmt.Sprint(fields[j+1])
		}
	}
	return table, nil
}
