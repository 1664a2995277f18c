package play

// BeginTry asks for the lock without waiting for another owner, and tells nothing; Tried waits for what becomes of it.
func (c *Process) BeginTry() {
	c.p.Helper()
	c.send(&order{Do: "try"})
}

// Tried reports whether the process got what BeginTry asked for.
func (c *Process) Tried() bool {
	c.p.Helper()
	return c.got("TryLock")
}

// Newer reports whether the process's last grant has a larger token than another's.
func (c *Process) Newer(than *Process) bool { return c.stamp.Token > than.stamp.Token }
