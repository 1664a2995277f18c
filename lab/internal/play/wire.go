package play

// order is what the director tells a process of the sound lock to do.
type order struct {
	Do    string `json:"do"`
	URL   string `json:"url,omitempty"`
	Name  string `json:"name,omitempty"`
	Lease int64  `json:"lease,omitempty"` // in ms
	Wait  int64  `json:"wait,omitempty"`  // in ms
	N     int    `json:"n,omitempty"`
}

// report is what it answers. One with Lost or Renewed answers no order: the process has been told of the loss of its
// lock, or its lease was renewed.
type report struct {
	Renewed bool `json:"renewed,omitempty"`

	OK    bool   `json:"ok"`
	Lost  bool   `json:"lost,omitempty"`
	Token uint64 `json:"token,omitempty"`
	Nonce string `json:"nonce,omitempty"`
	Why   string `json:"why,omitempty"` // held, lost, released, unavailable, deadline, or another error's text
	N     int64  `json:"n,omitempty"`

	Outcome string `json:"outcome,omitempty"` // of a transaction
	Fenced  int64  `json:"fenced,omitempty"`  // the number behind the fence
	Seen    uint64 `json:"seen,omitempty"`    // the token that a fence has seen, if it refused an older one
	Request string `json:"request,omitempty"` // of an order that was taken from a queue
	Node    string `json:"node,omitempty"`    // of ZooKeeper, that the process has made

	// These answer no order either: a command of an exhibit that the process runs, and that it waits from now on.
	Command string `json:"command,omitempty"`
	Answer  string `json:"answer,omitempty"`
	Queues  bool   `json:"queues,omitempty"`
}
