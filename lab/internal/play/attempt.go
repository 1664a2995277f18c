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
