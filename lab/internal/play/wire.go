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

// report is what it answers. One with Lost answers no order: the process has been told of the loss of its lock.
type report struct {
	OK    bool   `json:"ok"`
	Lost  bool   `json:"lost,omitempty"`
	Token uint64 `json:"token,omitempty"`
	Nonce string `json:"nonce,omitempty"`
	Why   string `json:"why,omitempty"` // held, lost, released, unavailable, deadline, or another error's text
	N     int64  `json:"n,omitempty"`

	Outcome string `json:"outcome,omitempty"` // of a transaction
	Request string `json:"request,omitempty"` // of an order that was taken from a queue
}
