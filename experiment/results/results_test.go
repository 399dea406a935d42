package results

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/miplc/miplc/train"
)

func TestHistogram(t *testing.T) {
	got := Histograms([]train.AttentionSnapshot{{Epoch: 3, Test: train.Scores{Positive: []float32{0, 0.039, 0.04, 1, 2, 1e30, float32(math.Inf(1)), -1, -1e30, float32(math.NaN())}}}, {Epoch: 4}}, []int{3})
	if len(got) != 1 || got[0].Epoch != 3 || got[0].Positive[0] != 4 || got[0].Positive[1] != 1 || got[0].Positive[24] != 4 || got[0].Negative != nil {
		t.Errorf("%+v", got)
	}
}

// The line of a failed cell has no accuracy, so that nobody averages a 0; that of a cell without
// correct predictions has one.
func TestAccuracyOfFailedCell(t *testing.T) {
	for reason, want := range map[string]bool{"": true, "no memory": false} {
		line, err := json.Marshal(&Result{Key: "k", Error: reason, Engine: "ort"})
		if err != nil || strings.Contains(string(line), `"accuracy":0`) != want || !strings.Contains(string(line), `"engine":"ort"`) {
			t.Errorf("%q: %s, %v", reason, line, err)
		}
	}
}

func FuzzResults(f *testing.F) {
	f.Add([]byte(`{"data":"P","r":1,"learner":"a","split":1,"key":"k","accuracy":0.5,"seconds":1}` + "\n" + `{"data":"P"`))
	f.Add([]byte("\n\n{}\n"))
	f.Add([]byte(`{"key":"k","data":"P","learner":"a","split":1,"attention":[{"epoch":1,"positive":[1,-1]}]}` + "\nx"))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, whole, err := parseResults("results.jsonl", text)
		if whole < 0 || whole > len(text) {
			t.Fatalf("%d of %d bytes", whole, len(text))
		}
		if err != nil {
			return
		}
		// The accepted part is parsed to the same results completely.
		again, all, err := parseResults("results.jsonl", text[:whole])
		if err != nil || all != whole || len(again) != len(list) {
			t.Fatalf("%d results in %d bytes, again %d in %d, %v", len(list), whole, len(again), all, err)
		}
		for i := range list {
			if err := list[i].valid(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
