package interlock

import (
	"context"
	"errors"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/shell"
)

// Read/write locks. internal/shell/direct.go asks for them, each mode by itself; Lease.Upgrade and
// Lease.Downgrade turn one mode into another.

// RWMutex is a lock that any number of readers, or one writer, hold at a time. Requests are served first come, first
// served. A writer that waits keeps out the readers that come after it, and is not kept out by them, so neither
// starves. Readers that stand next to each other in the queue get in together.
//
// Every hold has a lease of its own, so a reader that crashes frees only what it held. Every call goes to the engine by
// itself: unlike a Mutex, an RWMutex does not pass on inside the process.
//
// It is re-entrant by owner, see [Lease.Context] and [WithOwner]: a writer may read and write again, a reader may read
// again, and that never waits. A reader that asks to write would wait for itself, so it gets ErrDeadlock at once. If
// you may have to write after reading, take the upgradeable read; see [RWMutex.UpgradeableRLock]. The lock is the
// owner's until its last hold ends, in the strongest mode of what is left. When a write ends while a read of the same
// owner goes on, other readers can get in, and no writer in between.
//
// An RWMutex is safe for concurrent use. The zero value cannot be used. All of one client with the same name are the
// same lock.
type RWMutex struct {
	_      core.NoCopy
	modes  [3]core.Lock // by driver.Mode: the lock as each mode asks for it
	params [3]core.Terms
}

// RWMutex returns the read/write lock of that name with the given options. It asks no engine. An invalid name, invalid
// options, and an engine without such locks (ErrUnsupported, with the reason) are reported by its first call.
func (c *Client) RWMutex(name string, opts *LockOptions) *RWMutex {
	s := c.in()
	key := driver.Key{Kind: driver.KindRWMutex, Name: name}
	p := paramsDirect(s, key, opts)
	m := &RWMutex{}
	for i := range m.modes {
		m.params[i] = p
		m.params[i].Share = core.ShareMode{Direct: true, Mode: driver.Mode(i), Weight: 1, Of: &m.modes}
		m.modes[i] = core.Lock{Core: s.CoreOf(), Name: name, Terms: &m.params[i]}
	}
	if up := &m.params[driver.Upgradeable]; up.Err == nil && s.Convert == nil {
		up.Err = shell.Wrap("lock", key, s.NoConversion())
	}
	return m
}

// Lock waits until the lock is held for writing, and returns the hold. For ctx, errors and what is left behind see
// [Mutex.Lock].
//
// An owner that has the upgradeable read gets a second hold by an upgrade, see [Lease.Upgrade]; one that only reads
// gets ErrDeadlock at once. It costs one round trip, and one message when it has to wait.
func (m *RWMutex) Lock(ctx context.Context) (*Lease, error) {
	return handOver(shell.Acquire(ctx, m.modeMutex(driver.Exclusive), false))
}

// TryLock is Lock without waiting: if another owner holds the lock, or waits for it, the error is a *HeldError.
func (m *RWMutex) TryLock(ctx context.Context) (*Lease, error) {
	return handOver(shell.Acquire(ctx, m.modeMutex(driver.Exclusive), true))
}

// RLock waits until the lock is held for reading, beside other readers, and returns the hold. Its Stamp says Shared.
// See [RWMutex.Lock] for the rest.
func (m *RWMutex) RLock(ctx context.Context) (*Lease, error) {
	return handOver(shell.Acquire(ctx, m.modeMutex(driver.Shared), false))
}

// TryRLock is RLock without waiting: if another owner writes, or anybody waits, the error is a *HeldError.
func (m *RWMutex) TryRLock(ctx context.Context) (*Lease, error) {
	return handOver(shell.Acquire(ctx, m.modeMutex(driver.Shared), true))
}

// UpgradeableRLock waits for the upgradeable read, and returns the hold. It is a read beside other readers, but only
// one owner has it at a time. [Lease.Upgrade] turns it into the write without letting another writer in between. So
// take it for a read that may be followed by a write.
//
// A plain reader may take it too, unless another owner has it. Then the error is ErrDeadlock, because the other may
// upgrade and wait for this reader. Engines that cannot upgrade refuse it with ErrUnsupported and the reason. See
// [RWMutex.Lock] for the rest.
func (m *RWMutex) UpgradeableRLock(ctx context.Context) (*Lease, error) {
	return handOver(shell.Acquire(ctx, m.modeMutex(driver.Upgradeable), false))
}

// TryUpgradeableRLock is UpgradeableRLock without waiting: if another owner writes or has the upgradeable read, or
// anybody waits, the error is a *HeldError.
func (m *RWMutex) TryUpgradeableRLock(ctx context.Context) (*Lease, error) {
	return handOver(shell.Acquire(ctx, m.modeMutex(driver.Upgradeable), true))
}

var errNoRWMutex = errors.New("interlock: RWMutex was not made by Client.RWMutex")

// modeMutex returns the lock in that mode, or one whose first call fails if m was not made by a client.
func (m *RWMutex) modeMutex(mode driver.Mode) *core.Lock {
	if m == nil || m.modes[mode].Terms == nil {
		return &core.Lock{Terms: &core.Terms{Err: errNoRWMutex}}
	}
	return &m.modes[mode]
}
