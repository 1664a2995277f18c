// Package fleet is empty but for its tests: processes that lock with another library and processes that lock with
// interlock, at the same time on one server, as they do while a fleet moves from one to the other (docs/migration.md).
// It is in this module because this is where those libraries are required.
package fleet
