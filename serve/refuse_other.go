//go:build !linux

package serve

import "net"

// refuseConnections does nothing where the kernel cannot be asked to ignore requests for
// new connections.
func refuseConnections(net.Listener) {}

// pending cannot look into the kernel's queue; drain relies on its deadlines.
func pending(net.Listener) bool { return false }
