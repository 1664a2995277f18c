package driver

import "context"

// Watcher is implemented by engines that tell of changes without being asked.
type Watcher interface {
	// Watch calls changed when it has begun to watch key, and from then on soon after each change. A change of a lock
	// is one of its holders; of a latch, that its count has become zero. It may call it more often, and from any
	// goroutine but never twice at once; changed does not block. Watch survives broken connections, and calls changed
	// whenever something may have been missed. It returns when ctx has ended, with its error, or with another one if it
	// cannot go on; then the portable layer asks at intervals.
	//
	// A lease that ends while nobody waits for it need not be told. The portable layer looks by itself when the lease
	// that it has seen last should be over, or 15 seconds after that look if this is later. In any case it looks once a
	// minute. When a hold ends and only keeps others out from then on (Holder.Cooldown), that is a change.
	Watch(ctx context.Context, key Key, changed func()) error
}
