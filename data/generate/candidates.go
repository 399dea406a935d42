// Candidate sets of a table, attached to the bags of a dataset.

package generate

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/diag"
)

// ReadCandidates reads a table of candidate sets. Every value must be 0 or 1, and every image needs
// a candidate. classes is as for ReadAnnotators.
func ReadCandidates(path string, classes []string) (*LabelTable, error) {
	t, err := readTable(path, classes)
	if err != nil {
		return nil, err
	}
	var faults diag.List
	for i, image := range t.Images {
		pos := diag.Pos{File: path, Line: t.lines[i]}
		for c, v := range t.row(i) {
			if v != 0 && v != 1 {
				faults.Add(diag.Errorf(pos, "image %q, class %q: %v is neither 0 nor 1; make candidate sets out of annotators' "+
					"probabilities with miplc data crowd", image, t.Classes[c], v))
			}
		}
		if slices.Max(t.row(i)) == 0 {
			faults.Add(diag.Errorf(pos, "the image %q has no candidate label", image))
		}
	}
	return t, faults.Err()
}

// WriteCandidates writes the table in the format of ReadCandidates.
func WriteCandidates(w io.Writer, t *LabelTable) error {
	out := csv.NewWriter(w)
	row := append([]string{"image"}, t.Classes...)
	out.Write(row)
	for i, image := range t.Images {
		row = append(row[:0], image)
		for _, v := range t.row(i) {
			row = append(row, fmt.Sprint(v))
		}
		out.Write(row)
	}
	out.Flush()
	return out.Error()
}

// Outside says how AttachCandidates handles a bag whose true label is not among its candidates.
type Outside string

// Values of Outside.
const (
	OutsideError  Outside = "error"  // return an error
	OutsideAdd    Outside = "add"    // add the true label to the candidates
	OutsideDrop   Outside = "drop"   // drop the bag
	OutsideForget Outside = "forget" // keep the bag with unknown true label
)

// AttachCandidates returns the dataset with the candidate sets of the table. A row belongs to the bag with
// its name, or to the only bag whose name ends in "/" and its name. The second result is the number
// of bags whose true label is outside their candidates. Rows of other images are ignored; a bag
// without a row is an error. A dataset without classes gets those of the table.
func AttachCandidates(d *data.Dataset, t *LabelTable, outside Outside) (*data.Dataset, int, error) {
	if d.BagNames == nil {
		return nil, 0, diag.Errorf(diag.Pos{File: d.Name}, "the bags have no names to match with images; sets of miplc "+
			"data bags have")
	}
	rows, err := match(d.BagNames, t)
	if err != nil {
		return nil, 0, err
	}
	out := *d
	if out.Classes == 0 {
		out.Classes, out.ClassNames = len(t.Classes), slices.Clone(t.Classes)
	}
	number, names := make([]int, len(t.Classes)), out.AllClassNames()
	for c, name := range t.Classes {
		if number[c] = slices.Index(names, name); number[c] < 0 {
			return nil, 0, diag.Errorf(diag.Pos{File: t.Path}, "unknown class %q: no bag is of it", name).
				WithNote("the classes of the bags are %s", diag.Words(out.ClassNames)).
				WithSuggestion(diag.Suggest(name, out.ClassNames))
		}
	}
	out.Candidates = make([]uint8, out.Bags()*out.Classes)
	for i, r := range rows {
		for c, v := range t.row(r) {
			if v > 0 {
				out.CandidateMask(i)[number[c]] = 1
			}
		}
	}
	return truths(&out, t, outside)
}

// truths handles true labels outside the candidates.
func truths(d *data.Dataset, t *LabelTable, outside Outside) (*data.Dataset, int, error) {
	d.Labels = slices.Clone(d.Labels)
	var wrong, kept []int
	for i := range d.Bags() {
		if d.Labels == nil || d.Labels[i] < 0 || d.CandidateMask(i)[d.Labels[i]] == 1 {
			kept = append(kept, i)
			continue
		}
		wrong = append(wrong, i)
		switch outside {
		case OutsideAdd:
			d.CandidateMask(i)[d.Labels[i]] = 1
		case OutsideForget:
			d.Labels[i] = -1
		}
	}
	switch {
	case len(wrong) == 0:
		return d, 0, nil
	case outside == OutsideError:
		i := wrong[0]
		return nil, len(wrong), diag.Errorf(diag.Pos{File: t.Path}, "%d of %d images have a true label that is not among "+
			"their candidates; the first is %s of class %s",
			len(wrong), d.Bags(), d.BagNames[i], d.ClassName(d.Labels[i])).
			WithNote("choose what to do with them: --outside add, drop or forget")
	case outside == OutsideDrop && len(kept) == 0:
		return nil, len(wrong), diag.Errorf(diag.Pos{File: t.Path}, "no image has its true label among its candidates; "+
			"are the classes mixed up?")
	case outside == OutsideDrop:
		selected, err := d.Select(kept)
		return selected, len(wrong), err
	}
	return d, len(wrong), nil
}

// match returns the row of each bag.
func match(bags []string, t *LabelTable) ([]int, error) {
	exact := make(map[string]int, len(bags)) // keys are in one Unicode form
	ending := map[string]int{}               // suffix of a name -> bag, -1 for several
	for i, name := range bags {
		name = diag.Canonical(name)
		exact[name] = i
		_, rest, found := strings.Cut(name, "/")
		for ; found; _, rest, found = strings.Cut(rest, "/") {
			if _, several := ending[rest]; several {
				ending[rest] = -1
			} else {
				ending[rest] = i
			}
		}
	}
	rows := slices.Repeat([]int{-1}, len(bags))
	var faults diag.List
	for r, image := range t.Images {
		i, ok := exact[diag.Canonical(image)]
		if !ok {
			i, ok = ending[diag.Canonical(image)]
		}
		switch pos := (diag.Pos{File: t.Path, Line: t.lines[r]}); {
		case !ok:
			continue
		case i < 0:
			faults.Add(diag.Errorf(pos, "several bags are named %q at the end; write more of the path", image))
		case rows[i] >= 0:
			faults.Add(diag.Errorf(pos, "the image %q is the bag %q, which line %d gives candidates already", image, bags[i],
				t.lines[rows[i]]))
		default:
			rows[i] = r
		}
	}
	for i, r := range rows {
		if r < 0 {
			faults.Add(diag.Errorf(diag.Pos{File: t.Path}, "no row for the image %q", bags[i]).
				WithSuggestion(diag.Suggest(bags[i], t.Images)))
		}
	}
	return rows, faults.Err()
}
