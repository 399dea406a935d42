//go:build !unix

// Locks of temporary files, on other systems.

package fileio

// nonBlocking is the flag of os.OpenFile with which opening a named pipe does not block. These
// systems have no named pipes in folders.
const nonBlocking = 0

// lockTemp does nothing, because on these systems a lock would also block writes of this process.
// Temporary files of killed processes stay until their folder is claimed again.
func lockTemp(string) (release func()) { return func() {} }

func abandoned(string) bool { return false }
