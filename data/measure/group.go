// Measures of groups of bags, such as all slides of a patient.

package measure

import "slices"

// GroupPrefix starts the names of the measures of groups.
const GroupPrefix = "group_"

// withGroups adds the same measures of groups to a table.
func withGroups(table []Measure) []Measure {
	for _, m := range slices.Clone(table) {
		groups := "groups of bags (data.split.group)"
		if m.NeedsLabels() {
			groups += " whose bags have the same true label"
		}
		m.Name, m.Title, m.Needs, m.Group = GroupPrefix+m.Name, m.Title+" by group", groups+", and "+m.Needs, true
		table = append(table, m)
	}
	return table
}

// ByGroup returns the predictions of groups of bags, such as all slides of a patient, in the order of
// their first bags; nil if no bag has a group. The probabilities of a group are the means of those of its
// bags. Its true labels are those of its bags with known labels, and unknown if these differ. Its
// candidates are those that all of its bags with candidates have, and unknown if there are none.
func (p *Predictions) ByGroup() *Predictions {
	if p.groups == nil {
		return nil
	}
	out, bagsOf := &Predictions{Threshold: p.Threshold}, map[string][]int{}
	var names []string
	for i, name := range p.groups {
		if bagsOf[name] == nil {
			names = append(names, name)
		}
		bagsOf[name] = append(bagsOf[name], i)
	}
	for _, name := range names {
		labels, candidates := p.common(bagsOf[name])
		out.Add(p.meanOf(bagsOf[name]), labels, candidates)
	}
	return out
}

// meanOf returns the mean probabilities of bags.
func (p *Predictions) meanOf(bags []int) []float32 {
	mean := make([]float32, p.Classes)
	for c := range mean {
		sum := 0.0
		for _, i := range bags {
			sum += float64(p.Row(i)[c])
		}
		mean[c] = float32(sum / float64(len(bags)))
	}
	return mean
}

// common returns the true labels of those bags that have known ones, nil if they differ, and the candidates that all
// bags with candidates have.
func (p *Predictions) common(bags []int) (labels, candidates []uint8) {
	differ := false
	for _, i := range bags {
		if p.Known[i] {
			differ = differ || labels != nil && !slices.Equal(labels, p.labels(i))
			labels = p.labels(i)
		}
		set := p.Candidates[i*p.Classes : (i+1)*p.Classes]
		switch {
		case !slices.Contains(set, 1):
		case candidates == nil:
			candidates = slices.Clone(set)
		default:
			for c := range candidates {
				candidates[c] &= set[c]
			}
		}
	}
	if differ {
		labels = nil
	}
	return labels, candidates
}
