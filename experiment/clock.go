package experiment

import "time"

// clock estimates the time left from the seconds of finished cells, which differ
// much between learners and data sets.
type clock struct {
	jobs    int
	left    map[string]int // cells to run, by kind
	seconds map[string]*mean
	all     mean
}

type mean struct {
	sum float64
	n   int
}

func (m *mean) add(v float64) { m.sum, m.n = m.sum+v, m.n+1 }

// kind gathers cells that take about as long.
func kind(c Coord) string { return c.Learner + "\x00" + c.Data }

// newClock starts with the seconds of earlier results.
func newClock(pending []*Cell, have []Result, jobs int) clock {
	k := clock{jobs: jobs, left: map[string]int{}, seconds: map[string]*mean{}}
	for _, c := range pending {
		k.left[kind(c.Coord)]++
	}
	for _, r := range have {
		k.note(&r)
	}
	return k
}

func (k *clock) note(r *Result) {
	if r.Error != "" {
		return
	}
	m := k.seconds[kind(r.Coord)]
	if m == nil {
		m = &mean{}
		k.seconds[kind(r.Coord)] = m
	}
	m.add(r.Seconds)
	k.all.add(r.Seconds)
}

// tick counts a cell as done and estimates the rest; 0 when nothing is known.
func (k *clock) tick(r *Result) time.Duration {
	k.left[kind(r.Coord)]--
	k.note(r)
	total := 0.0
	for name, n := range k.left {
		m := k.seconds[name]
		if m == nil {
			m = &k.all
		}
		if m.n > 0 {
			total += float64(n) * m.sum / float64(m.n)
		}
	}
	return time.Duration(total / float64(k.jobs) * float64(time.Second))
}
