// The status of an experiment counts cells and processes correctly, and quickly in large experiments.

package experiment

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/miplc/miplc/experiment/definition"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/runs"
	"github.com/miplc/miplc/train"
)

// The status has finished, failed and running cells. A process that ended or stopped writing is not
// running.
func TestStatus(t *testing.T) {
	e := parse(t, strings.Replace(tiny, "spec: demipl-md, set: {", "spec: demipl-md, set: {train.lr: 1e30, ", 1))
	dir := t.TempDir()
	shardPlan, err := PlanShards(e, Work{Dir: dir}, Sharding{Shards: 2, CPUs: 3})
	if err != nil {
		t.Fatal(err)
	}
	look := func(now time.Time) *Status {
		t.Helper()
		s, err := ReadStatus(dir, now)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	now := time.Now()
	if s := look(now); s.Cells != 8 || s.Done+s.Failed+len(s.Running) != 0 || s.Shards != 2 || s.PlanID != shardPlan.ID ||
		s.Left != nil || s.Seconds == nil || *s.Seconds <= 0 {
		t.Errorf("before: %+v", s)
	}
	_, _, err = run(t, e, Work{Dir: dir})
	if err == nil {
		t.Fatal("no cell failed")
	}
	s := look(now)
	if s.Done != 4 || s.Failed != 4 || len(s.Failures) != 4 || !strings.Contains(s.Failures[0].Error, "epoch 1") ||
		len(s.Running) != 0 || s.Left != nil {
		t.Errorf("after: %+v", s)
	}
	file, err := openJournal(dir, "2-of-2")
	if err != nil {
		t.Fatal(err)
	}
	// clocks of machines differ
	for ago, runs := range map[time.Duration]bool{0: true, heartbeat: true, alive + time.Second: false, -time.Hour: true} {
		if err := os.Chtimes(file.File.Name(), now.Add(-ago), now.Add(-ago)); err != nil {
			t.Fatal(err)
		}
		s := look(now)
		if (len(s.Running) == 1) != runs || (s.Left != nil) != runs {
			t.Errorf("silent for %v: %+v", ago, s)
		}
		if host, _ := os.Hostname(); runs && (s.Running[0].Part != "2-of-2" || s.Running[0].Host != diag.FileName(host) ||
			*s.Left != *s.Seconds/3) {
			t.Errorf("%+v", s)
		}
	}
	if err := file.Add([]*Result{{Coord: definition.Coord{Data: "P", Learner: "x", Split: 1}, Key: "k"}}); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if s := look(time.Now()); len(s.Running) != 0 {
		t.Errorf("ended: %+v", s)
	}
}

// many returns an experiment with the given number of cells in a folder, with a result for each.
func many(b *testing.B, cells int) (dir string) {
	b.Helper()
	e := manyCells(b, cells)
	dir = b.TempDir()
	if _, err := PlanShards(e, Work{Dir: dir}, Sharding{Workers: 64}); err != nil {
		b.Fatal(err)
	}
	plan, err := ReadPlan(dir)
	if err != nil || len(plan.Cells) != cells {
		b.Fatalf("%d cells, %v", len(plan.Cells), err)
	}
	var journals []*journal
	for i := range 512 {
		j, err := openJournal(dir, fmt.Sprint(i+1, "-of-512"))
		if err != nil {
			b.Fatal(err)
		}
		defer j.Close()
		journals = append(journals, j)
	}
	lists := make([][]*Result, len(journals))
	for i, c := range plan.Cells {
		h := []train.Histogram{{Epoch: 1, Positive: make([]int, train.HistogramBins),
			Negative: make([]int, train.HistogramBins)}}
		r := &Result{Coord: c.Coord, Key: c.Key, Accuracy: 0.5, Seconds: 1, Attention: h,
			Assessment: runs.Assessment{Engine: "native"}}
		lists[i%len(lists)] = append(lists[i%len(lists)], r)
	}
	for i, j := range journals {
		if err := j.Add(lists[i]); err != nil {
			b.Fatal(err)
		}
	}
	return dir
}

// manyCells returns an experiment of 20 learners on 10 datasets with the given number of cells.
func manyCells(b *testing.B, cells int) *definition.Experiment {
	b.Helper()
	var text strings.Builder
	text.WriteString("name: many\ndata:\n")
	for i := range 10 {
		fmt.Fprintf(&text, "  - {name: P%d, synth: {set: prototypes, bags: 200, features: 20, seed: %d}}\n", i, i+1)
	}
	text.WriteString("learners:\n")
	for i := range 20 {
		fmt.Fprintf(&text, "  - {name: l%d, spec: demipl, set: {train.epochs: %d}, grid: {train.lr: [0.01, 0.02, 0.05, "+
			"0.1]}}\n", i, i+10)
	}
	fmt.Fprintf(&text, "splits: {count: %d}\n", cells/200)
	e, err := definition.Parse(filepath.Join("many.yaml"), []byte(text.String()))
	if err != nil {
		b.Fatal(err)
	}
	return e
}

const benchmarked = 10_000

func BenchmarkPlan(b *testing.B) {
	e := manyCells(b, benchmarked)
	for b.Loop() {
		if _, err := PlanShards(e, Work{Dir: b.TempDir()}, Sharding{Workers: 64}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkStatus(b *testing.B) {
	dir := many(b, benchmarked)
	for b.Loop() {
		if s, err := ReadStatus(dir, time.Now()); err != nil || s.Done != benchmarked {
			b.Fatalf("%+v, %v", s, err)
		}
	}
}
