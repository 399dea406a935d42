// Checkpoints take a small share of the time.

package train

import (
	"testing"
	"time"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/language"
)

// A checkpoint is skipped if the time since the last one is less than 20 times its duration. The
// checkpoint of the last epoch is never skipped.
func TestCheckpointsTakeASmallShareOfTheTime(t *testing.T) {
	spec, err := language.Load("quickstart", "train.checkpoint=2")
	if err != nil {
		t.Fatal(err)
	}
	f := &fit{}
	r := &Run{Record: Record{Trial: &Trial{Program: &compile.Program{Spec: spec}, Dir: "folder"}, Epochs: 7}, fit: f}
	for _, c := range []struct {
		done     int
		saveTime time.Duration
		since    time.Duration
		want     bool
	}{
		{2, 0, 0, true}, // the first
		{4, time.Second, 19 * time.Second, false},
		{4, time.Second, 21 * time.Second, true},
		{5, time.Second, time.Hour, false},
		{7, time.Hour, 0, true},
	} {
		f.saveTime, f.lastSave = c.saveTime, time.Now().Add(-c.since)
		if r.done = c.done; r.checkpointDue() != c.want {
			t.Errorf("after epoch %d, %v after a checkpoint that took %v: due %v", c.done, c.since, c.saveTime, !c.want)
		}
	}
}
