// Writing of CSV files.

package bagfile

import (
	"cmp"
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/miplc/miplc/data"
)

func writeCSVGzip(w io.Writer, d *data.Dataset) error {
	z := gzip.NewWriter(w) // without name and time: the same dataset gives the same bytes
	if err := writeCSV(z, d); err != nil {
		return err
	}
	return z.Close()
}

func writeCSV(w io.Writer, d *data.Dataset) error {
	names := d.AllClassNames()
	for _, name := range names {
		if !slices.Equal(strings.Fields(name), []string{name}) || strings.TrimRight(name, spreadsheetPadding) != name {
			return fmt.Errorf("the class name %q has spaces, or a comma at its end, which is not possible in CSV; save as .npz",
				name)
		}
	}
	if !inferable(d, names) {
		if _, err := fmt.Fprintf(w, "%s %s\n", classesLine, strings.Join(names, " ")); err != nil {
			return err
		}
	}
	header := []string{"bag", "label", "candidates"}
	if d.InstLabels != nil {
		header = append(header, "instance_label")
	}
	if d.Groups != nil {
		header = append(header, cmp.Or(d.GroupName, roleNames[roleGroup]))
	}
	if d.Coords != nil {
		header = append(header, "x", "y")
	}
	for j := range d.Dim() {
		if d.FeatureNames != nil {
			header = append(header, d.FeatureNames[j])
		} else {
			header = append(header, fmt.Sprintf("f%d", j+1))
		}
	}
	rows := csv.NewWriter(w)
	rows.Write(header)
	err := d.Each(d.AllBags(), func(i int, x []float32) error {
		writeCSVBag(rows, d, i, x, names)
		return rows.Error()
	})
	rows.Flush()
	return cmp.Or(err, rows.Error())
}

// inferable reports whether a reader finds the classes, in their order, from the labels and the
// candidates of the rows, so that no line has to list them.
func inferable(d *data.Dataset, names []string) bool {
	occurs := make([]bool, len(names))
	for i, in := range d.Candidates {
		occurs[i%d.Classes] = occurs[i%d.Classes] || in != 0
	}
	var c csvReader
	refused := func(name string) bool { return data.MissingMark(name) || c.className(name) != name }
	return !slices.Contains(occurs, false) && !slices.ContainsFunc(names, refused) &&
		slices.Equal(names, sortedNames(names)) && !strings.ContainsAny(strings.Join(names, ""), foreignSeparators)
}

// writeCSVBag writes the rows of bag i with the instances x. w keeps write errors.
func writeCSVBag(w *csv.Writer, d *data.Dataset, i int, x []float32, names []string) {
	candidates, label := d.CandidateNames(i), ""
	if d.Multi {
		label, candidates = strings.Join(candidates, " "), nil
	} else if c, known := d.Label(i); known {
		label = names[c]
	}
	id := strconv.Itoa(i + 1)
	if d.BagNames != nil {
		id = d.BagNames[i]
	}
	for j, instance := range slices.Collect(slices.Chunk(x, d.Dim())) {
		row := []string{id, label, strings.Join(candidates, " ")}
		if d.InstLabels != nil {
			name := ""
			if c := d.InstLabels[d.Offsets[i]+j]; c >= 0 {
				name = names[c]
			}
			row = append(row, name)
		}
		if d.Groups != nil {
			row = append(row, d.Groups[i])
		}
		if d.Coords != nil {
			instance = slices.Concat(d.CoordsOf(i)[2*j:2*j+2], instance)
		}
		for _, v := range instance {
			row = append(row, strconv.FormatFloat(float64(v), 'g', -1, 32))
		}
		w.Write(row)
	}
}

func quoteCSV(s string) string {
	if !strings.ContainsAny(s, "\",\r\n") {
		return s
	}
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}
