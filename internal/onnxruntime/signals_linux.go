//go:build cgo

// Stacks for signals, which libraries may take away.

package onnxruntime

// #include <signal.h>
// #include <stdlib.h>
// static stack_t *save_signal_stack(void) {
//   stack_t *s = malloc(sizeof *s);
//   if (s && sigaltstack(NULL, s)) { free(s); s = NULL; }
//   return s;
// }
// static void restore_signal_stack(stack_t *s) {
//   if (s) sigaltstack(s, NULL);
//   free(s);
// }
import "C"

import "runtime"

// keepSignalStack calls f and restores the alternate signal stack of the thread afterwards. The CPU
// device of OpenVINO gives another stack to the thread that loads it, and unmaps that stack with
// its last session, perhaps on another thread. The first thread would then crash at its next
// signal, which Go sends to preempt goroutines.
func keepSignalStack(f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	stack := C.save_signal_stack()
	defer C.restore_signal_stack(stack)
	return f()
}
