// Access for tests to predictions in chunks of any size.

package runtime

// PredictInChunks makes a model predict bags of more than n instances in chunks of n. It reports
// whether its graph can be divided.
func PredictInChunks(m *Model, n int) bool {
	d := m.current.Load().chunked
	if d != nil {
		d.chunk, d.headBytes = n, 0
	}
	return d != nil
}

// InChunks reports whether a bag of n instances is predicted in chunks.
func InChunks(m *Model, n int) bool { return m.current.Load().inChunks(n) }
