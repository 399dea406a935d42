// Writing of CSV files.

package bagfile

import (
	"bufio"
	"cmp"
	"compress/gzip"
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
	out := bufio.NewWriterSize(w, 1<<16)
	if !inferable(d, names) {
		fmt.Fprintf(out, "%s %s\n", classesLine, strings.Join(names, " "))
	}
	out.WriteString("bag,label,candidates")
	if d.InstLabels != nil {
		out.WriteString(",instance_label")
	}
	if d.Groups != nil {
		out.WriteString("," + quoteCSV(cmp.Or(d.GroupName, roleNames[roleGroup])))
	}
	if d.Coords != nil {
		out.WriteString(",x,y")
	}
	for j := range d.Dim() {
		if d.FeatureNames != nil {
			out.WriteString("," + quoteCSV(d.FeatureNames[j]))
		} else {
			fmt.Fprintf(out, ",f%d", j+1)
		}
	}
	out.WriteString("\n")
	err := d.Each(d.AllBags(), func(i int, x []float32) error {
		writeCSVBag(out, d, i, x, names)
		return nil
	})
	if err != nil {
		return err
	}
	return out.Flush()
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
func writeCSVBag(w *bufio.Writer, d *data.Dataset, i int, x []float32, names []string) {
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
	start := fmt.Sprintf("%s,%s,%s", quoteCSV(id), quoteCSV(label), quoteCSV(strings.Join(candidates, " ")))
	dim := d.Dim()
	var number []byte
	for j := range d.Size(i) {
		w.WriteString(start)
		if d.InstLabels != nil {
			w.WriteByte(',')
			if c := d.InstLabels[d.Offsets[i]+j]; c >= 0 {
				w.WriteString(quoteCSV(names[c]))
			}
		}
		if d.Groups != nil {
			w.WriteString("," + quoteCSV(d.Groups[i]))
		}
		write := func(numbers []float32) {
			for _, x := range numbers {
				w.WriteByte(',')
				number = strconv.AppendFloat(number[:0], float64(x), 'g', -1, 32)
				w.Write(number)
			}
		}
		if d.Coords != nil {
			write(d.CoordsOf(i)[2*j : 2*j+2])
		}
		write(x[j*dim : (j+1)*dim])
		w.WriteByte('\n')
	}
}

func quoteCSV(s string) string {
	if !strings.ContainsAny(s, "\",\r\n") {
		return s
	}
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}
