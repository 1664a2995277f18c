package servers

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// clusterView is what one node of a Cluster knows about all.
type clusterView []clusterEntry

// clusterEntry is what it knows about one.
type clusterEntry struct {
	id      string
	addr    string
	flags   []string
	primary string // its id, or "" for a primary
	linked  bool
	slots   [][2]int // first and last of each range
}

// view asks a node.
func (c *ClusterRedis) view(ctx context.Context, n *RedisNode) (clusterView, error) {
	reply, err := n.Do(ctx, "CLUSTER", "NODES")
	if err != nil {
		return nil, err
	}
	return parseClusterNodes(reply), nil
}

// parseClusterNodes reads lines such as
//
//	ID 127.0.0.1:7001@17001,name myself,master - 0 1700000000000 2 connected 0-5460 5462 [5461->-ID]
func parseClusterNodes(reply any) clusterView {
	text, _ := reply.(string)
	var view clusterView
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 8 {
			continue
		}
		addr, _, _ := strings.Cut(fields[1], "@")
		e := clusterEntry{
			id: fields[0], addr: addr, flags: strings.Split(fields[2], ","),
			primary: strings.Trim(fields[3], "-"), linked: fields[7] == "connected",
		}
		for _, slots := range fields[8:] {
			if r, ok := parseSlots(slots); ok {
				e.slots = append(e.slots, r)
			}
		}
		view = append(view, e)
	}
	return view
}

// parseSlots reads a range or a single slot; slots on the move, in brackets, are none.
func parseSlots(s string) (r [2]int, ok bool) {
	first, last, isRange := strings.Cut(s, "-")
	if !isRange {
		last = first
	}
	var errs [2]error
	r[0], errs[0] = strconv.Atoi(first)
	r[1], errs[1] = strconv.Atoi(last)
	return r, errs[0] == nil && errs[1] == nil
}

// owner returns the address of the slot's primary, or "".
func (v clusterView) owner(slot int) string {
	for _, e := range v {
		for _, r := range e.slots {
			if r[0] <= slot && slot <= r[1] {
				return e.addr
			}
		}
	}
	return ""
}

// primaryOf returns the address of the primary of the node with that id, or "" if it is one itself.
func (v clusterView) primaryOf(id string) string {
	i := slices.IndexFunc(v, func(e clusterEntry) bool { return e.id == id })
	if i < 0 || v[i].primary == "" {
		return ""
	}
	j := slices.IndexFunc(v, func(e clusterEntry) bool { return e.id == v[i].primary })
	if j < 0 {
		return "unknown"
	}
	return v[j].addr
}

// places tells who follows whom and who has which slots, alike for views that agree.
func (v clusterView) places() string {
	var all []string
	for _, e := range v {
		all = append(all, fmt.Sprint(e.id, " of ", e.primary, " has ", e.slots))
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// sound reports whether the node is connected and neither suspected nor new.
func (e clusterEntry) sound() bool {
	return e.linked && !slices.ContainsFunc(e.flags, func(flag string) bool {
		return flag != "myself" && flag != "master" && flag != "slave"
	})
}
