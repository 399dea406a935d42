//go:build !unix

package infile

// NonBlocking is the flag of os.OpenFile with which opening a named pipe does not block. These
// systems have no named pipes in folders.
const NonBlocking = 0
