//go:build cgo

// Opening of sessions.

package onnxruntime

import ort "github.com/yalue/onnxruntime_go"

// OpenSession opens a session of an ONNX model. The caller holds the lock of the provider.
func OpenSession(model []byte, in, out []string, opts *ort.SessionOptions) (session *ort.DynamicAdvancedSession,
	err error) {
	err = keepSignalStack(func() error {
		session, err = ort.NewDynamicAdvancedSessionWithONNXData(model, in, out, opts)
		return err
	})
	return session, err
}
