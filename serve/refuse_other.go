//go:build !linux

package serve

import "net"

// refuseConnections does nothing on systems where the kernel cannot ignore requests for new
// connections.
func refuseConnections(net.Listener) {}

// pending returns false, because the kernel's queue is not visible; drain relies on its deadlines.
func pending(net.Listener) bool { return false }
