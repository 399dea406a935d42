//go:build !linux

// The memory that a process may use, on other systems.

package resources

// system returns no limits on these systems.
func system() []Budget { return nil }

// AddressSpace returns no limit.
func AddressSpace() (limit float64, limited bool) { return 0, false }
