package serve

import (
	"net"

	"golang.org/x/sys/unix"
)

// refuseConnections makes the kernel ignore requests for new connections to a listener. Handshakes
// in progress continue. Without it, the kernel's queue could always contain a connection when the
// listener is closed, and that connection would be reset. A client whose request is ignored repeats
// it after a second; then it is refused, or reaches another server.
func refuseConnections(l net.Listener) {
	const flags, syn = 13, 0x02 // of the TCP header
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: flags},
		{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, Jt: 0, Jf: 1, K: syn},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},
		{Code: unix.BPF_RET | unix.BPF_K, K: 1 << 18}, // more bytes than a packet has
	}
	control(l, func(fd int) { // if filters are forbidden, drain works without them
		_ = unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]})
	})
}

// pending reports whether a connection waits in the kernel's queue of a listener.
func pending(l net.Listener) (found bool) {
	control(l, func(fd int) {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		found = err == nil && n > 0
	})
	return found
}

// control calls a function with the file descriptor of a TCP listener.
func control(l net.Listener, f func(fd int)) {
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		return
	}
	if raw, err := tcp.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { f(int(fd)) })
	}
}
