package train

import (
	"testing"
	"time"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/language"
)

// Other tests of this package count on a checkpoint after each epoch.
func init() { keepShare = 0 }

// A checkpoint waits while the last one took more than a twentieth of the time since then.
// That of the last epoch never waits.
func TestCheckpointsTakeASmallShareOfTheTime(t *testing.T) {
	spec, err := language.Load("quickstart", "train.checkpoint=2")
	if err != nil {
		t.Fatal(err)
	}
	keepShare = 20
	defer func() { keepShare = 0 }()
	f := &fit{}
	r := &Run{Record: Record{Trial: &Trial{Program: &compile.Program{Spec: spec}, Dir: "folder"}, Epochs: 7}, fit: f}
	for _, c := range []struct {
		done    int
		keeping time.Duration
		since   time.Duration
		want    bool
	}{
		{2, 0, 0, true}, // the first
		{4, time.Second, 19 * time.Second, false},
		{4, time.Second, 21 * time.Second, true},
		{5, time.Second, time.Hour, false},
		{7, time.Hour, 0, true},
	} {
		f.keeping, f.kept = c.keeping, time.Now().Add(-c.since)
		if r.done = c.done; r.due() != c.want {
			t.Errorf("after epoch %d, %v after a checkpoint that took %v: due %v", c.done, c.since, c.keeping, !c.want)
		}
	}
}
