// Package fleet is empty but for its tests: processes that lock with redsync, with bsm/redislock and with interlock,
// at the same time on one Redis, as they do while a fleet moves from one library to another (docs/migration.md). It
// is in this module because this is where those libraries are required.
package fleet
