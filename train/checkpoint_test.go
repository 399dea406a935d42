// Checkpoints are read as they were written, and damaged ones are refused.

package train

import (
	"crypto/sha256"
	"reflect"
	"testing"
)

func sampleCheckpoint() *Checkpoint {
	return &Checkpoint{
		Identity: Identity{Spec: "s", Data: "d", Split: "p", Engine: "e"}, Epoch: 1,
		Metrics: []Metrics{{Epoch: 1, LR: 0.1, Loss: 1.0 / 3, Terms: map[string]float64{"a": 0.1},
			Measures: Measures{"test": {"accuracy": 0.5}}}},
		Params: vectors{"W": {1, -2, 3e-40}, "empty": {}}, Optimizer: vectors{}, Weights: floats{0.5},
		Trajectories: []Trajectory{{Bag: 1, Candidates: []int{0}, Weights: [][]float32{{1. / 3, 3e-40}}}},
		Attention:    []AttentionSnapshot{{Epoch: 1, Train: Scores{Positive: floats{0.1}}}},
	}
}

func TestCheckpointRoundTrip(t *testing.T) {
	c := sampleCheckpoint()
	file, err := c.encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodeCheckpoint(file)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, c) {
		t.Errorf("got %+v, want %+v", got, c)
	}
	for cut := range file {
		if _, err := decodeCheckpoint(file[:cut]); err == nil {
			t.Fatalf("cut to %d of %d bytes: %v", cut, len(file), err)
		}
	}
}

// FuzzCheckpoint reads files whose checksum is correct and whose content is arbitrary.
func FuzzCheckpoint(f *testing.F) {
	file, err := sampleCheckpoint().encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(file[sha256.Size:])
	f.Fuzz(func(t *testing.T, text []byte) {
		sum := sha256.Sum256(text)
		c, err := decodeCheckpoint(append(sum[:], text...))
		if err != nil {
			return
		}
		again, err := c.encode()
		if err != nil {
			t.Fatal(err)
		}
		if back, err := decodeCheckpoint(again); err != nil || back.Epoch != c.Epoch || len(back.Params) != len(c.Params) {
			t.Fatalf("second reading: %v", err)
		}
	})
}
