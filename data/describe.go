// The counts of a dataset, as in Table 1 of the paper.

package data

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/miplc/miplc/internal/diag"
)

// Stats are the counts of a dataset: those of Table 1 of the paper and some more.
type Stats struct {
	Name          string  `json:"name"`
	Bags          int     `json:"bags"`
	Instances     int     `json:"instances"`
	Dim           int     `json:"dim"`
	MeanSize      float64 `json:"mean_instances"` // instances per bag
	Classes       int     `json:"classes"`
	MeanLabels    float64 `json:"mean_candidates"` // candidate labels per bag
	Shape         []int   `json:"shape"`
	MinSize       int     `json:"min_instances"`
	MaxSize       int     `json:"max_instances"`
	MinLabels     int     `json:"min_candidates"`
	MaxLabels     int     `json:"max_candidates"`
	PositiveShare float64 `json:"positive_share"` // of the instances; -1: unknown
	Hash          string  `json:"sha256"`
	Outside       int     `json:"outside_candidates,omitempty"` // bags whose true label is not a candidate
	// Coords are the smallest and the largest x and y of the instances; nil if unknown.
	Coords     *[2][2]float32 `json:"coordinates,omitempty"`
	WithCoords int            `json:"bags_with_coordinates,omitempty"`
	// Constant is the number of features with the same value in all instances; not counted for instances on disk.
	Constant int `json:"constant_features,omitempty"`

	GroupName string `json:"group_name,omitempty"` // such as patient
	Groups    int    `json:"groups,omitempty"`     // 0: the bags have no groups
	MaxGroup  int    `json:"max_group,omitempty"`  // bags of the largest group

	ByClass  []ClassStats `json:"by_class"`
	Warnings []string     `json:"warnings,omitempty"` // see data.Dataset
}

// ClassStats counts the bags of one class.
type ClassStats struct {
	Name      string `json:"name"`
	Truth     int    `json:"truth"`     // bags with this true label
	Candidate int    `json:"candidate"` // bags with this label among the candidates
	Positive  int    `json:"positive"`  // positive instances of the class, 0 if unknown
}

// Describe returns the counts of a valid dataset.
func Describe(d *Dataset) Stats {
	s := Stats{
		Name: d.Name, Bags: d.Bags(), Instances: d.Offsets[d.Bags()], Dim: d.Dim(), Classes: d.Classes,
		Shape: d.Shape, MinSize: d.Size(0), MinLabels: d.Classes, PositiveShare: -1, Hash: d.Hash(), Outside: d.Outside(),
		ByClass: make([]ClassStats, d.Classes), Warnings: d.Warnings,
	}
	if d.Groups != nil {
		sizes := map[string]int{}
		for _, group := range d.Groups {
			sizes[group]++
		}
		s.GroupName, s.Groups = cmp.Or(d.GroupName, "group"), len(sizes)
		s.MaxGroup = slices.Max(slices.Collect(maps.Values(sizes)))
	}
	labels := 0
	for i := range d.Bags() {
		s.MinSize, s.MaxSize = min(s.MinSize, d.Size(i)), max(s.MaxSize, d.Size(i))
		n := 0
		for c, in := range d.CandidateMask(i) {
			n += int(in)
			s.ByClass[c].Candidate += int(in)
		}
		s.MinLabels, s.MaxLabels = min(s.MinLabels, n), max(s.MaxLabels, n)
		labels += n
		for c, in := range d.TrueMask(i) {
			s.ByClass[c].Truth += int(in)
		}
	}
	s.Coords, s.WithCoords = coordRange(d)
	s.Constant = constantFeatures(d)
	s.MeanSize = float64(s.Instances) / float64(s.Bags)
	s.MeanLabels = float64(labels) / float64(s.Bags)
	if AnyKnown(d.InstLabels) {
		positive := 0
		for bag := range d.Bags() {
			for j := d.Offsets[bag]; j < d.Offsets[bag+1]; j++ {
				if d.Positive(bag, j) {
					s.ByClass[d.InstLabels[j]].Positive++
					positive++
				}
			}
		}
		s.PositiveShare = float64(positive) / float64(s.Instances)
	}
	for c := range s.ByClass {
		s.ByClass[c].Name = d.ClassName(c)
	}
	return s
}

// constantFeatures returns the number of features with the same value in all instances in memory.
func constantFeatures(d *Dataset) int {
	dim := d.Dim()
	if len(d.Instances) == 0 {
		return 0
	}
	first, candidates := d.Instances[:dim], numbers(dim)
	for at := dim; at < len(d.Instances) && len(candidates) > 0; at += dim {
		row := d.Instances[at : at+dim]
		candidates = slices.DeleteFunc(candidates, func(j int) bool { return row[j] != first[j] })
	}
	return len(candidates)
}

// coordRange returns the ranges of x and y, nil if no bag has coordinates, and the number of bags all of whose
// files have.
func coordRange(d *Dataset) (r *[2][2]float32, bags int) {
	for bag := range d.Bags() {
		all := true
		for _, f := range d.Files(bag) {
			if len(f.Coords) == 0 {
				all = false
				continue
			}
			if r == nil {
				r = &[2][2]float32{{f.Coords[0], f.Coords[0]}, {f.Coords[1], f.Coords[1]}}
			}
			for i, v := range f.Coords {
				r[i%2][0], r[i%2][1] = min(r[i%2][0], v), max(r[i%2][1], v)
			}
		}
		if all {
			bags++
		}
	}
	return r, bags
}

// StatsMarkdown formats datasets as rows of Table 1 of the paper.
func StatsMarkdown(sets ...Stats) string {
	var b strings.Builder
	b.WriteString("| Dataset | #bags | #ins | #dim | avg. #ins | #class | avg. #CLs |\n")
	b.WriteString("|---|---:|---:|---:|---:|---:|---:|\n")
	for _, s := range sets {
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %s | %d | %s |\n", cell(s.Name),
			s.Bags, s.Instances, s.Dim, decimals(s.MeanSize), s.Classes, decimals(s.MeanLabels))
	}
	return b.String()
}

// cell escapes a name for a cell of a table.
func cell(name string) string { return strings.ReplaceAll(diag.CleanLine(name), "|", `\|`) }

// decimals formats x with at most two decimals.
func decimals(x float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", x), "0"), ".")
}

// Details formats the counts that are not in Table 1: sizes, share of positive instances, and
// classes.
func (s Stats) Details() string {
	var b strings.Builder
	fmt.Fprintf(&b, "shape of an instance: %v\n", s.Shape)
	fmt.Fprintf(&b, "instances per bag: %d to %d\n", s.MinSize, s.MaxSize)
	fmt.Fprintf(&b, "candidate labels per bag: %d to %d\n", s.MinLabels, s.MaxLabels)
	if s.Groups > 0 {
		fmt.Fprintf(&b, "groups (%s): %d, of up to %s\n", s.GroupName, s.Groups, diag.Count(s.MaxGroup, "bag"))
	}
	if s.Outside > 0 {
		fmt.Fprintf(&b, "true label outside the candidates: %d of %d bags\n", s.Outside, s.Bags)
	}
	if s.PositiveShare >= 0 {
		fmt.Fprintf(&b, "positive instances: %.1f %%\n", 100*s.PositiveShare)
	} else {
		b.WriteString("positive instances: unknown\n")
	}
	if r := s.Coords; r != nil {
		some := ""
		if s.WithCoords < s.Bags {
			some = fmt.Sprintf(" of %d of %s", s.WithCoords, diag.Count(s.Bags, "bag"))
		}
		fmt.Fprintf(&b, "coordinates%s: x %v to %v, y %v to %v\n", some, r[0][0], r[0][1], r[1][0], r[1][1])
	}
	if s.Constant > 0 {
		fmt.Fprintf(&b, "features with the same value in all instances: %d of %d\n", s.Constant, s.Dim)
	}
	fmt.Fprintf(&b, "contents: sha256 %s\n\n", s.Hash)
	known := s.PositiveShare >= 0
	column := func(text string) string { // without the column of positive instances if they are unknown
		if known {
			return text
		}
		return ""
	}
	b.WriteString("| class | true label of | candidate of |" + column(" positive instances |") + "\n|---|---:|---:|" +
		column("---:|") + "\n")
	for _, c := range s.ByClass {
		fmt.Fprintf(&b, "| %s | %d | %d |%s\n", cell(c.Name), c.Truth, c.Candidate, column(fmt.Sprintf(" %d |", c.Positive)))
	}
	return b.String()
}
