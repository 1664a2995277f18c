package handoff

// LeaseBounds are bounds of the model of leases: see the package documentation.
type LeaseBounds struct {
	Clients  int // 2 or 3
	Requests int // of each client, one after the other
	Lease    int // in ticks
	Horizon  int // ticks after which a message that is under way is dropped
	Messages int // under way at once
}

// SearchLeases visits the states of the model of leases within bounds. It is for programs that tell what was searched,
// such as the lab; the package's own tests have bounds of their own.
func SearchLeases(r Rules, b LeaseBounds, limit int) Result {
	return Search(&leases{
		rules: r, clients: b.Clients, requests: b.Requests,
		lease: uint8(b.Lease), horizon: uint8(b.Horizon), room: b.Messages, //nolint:gosec // a few ticks
	}, limit)
}
