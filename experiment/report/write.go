// Writing of a report: its parts in order, into a folder that may contain an earlier report.

package report

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/miplc/miplc/data/measure"
	"github.com/miplc/miplc/experiment/definition"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/fileio"
)

// Names inside the folder of a report.
const (
	markdownFile  = "report.md"
	laTeXFile     = "report.tex"
	HTMLFile      = "report.html"
	csvFile       = "results.csv"
	trialsFile    = "trials.csv"
	FiguresFolder = "figures"
)

// document is a complete report, with its parts in order.
type document struct {
	Title, Description, Status string
	Parts                      []part
	Facts                      []string
	Failures                   []string
}

// part is a table or a figure.
type part struct {
	Number int // number of the table or figure, from 1
	Table  *Table
	Figure *figure
}

// csvName returns the name of the file with all lines of a table.
func (p *part) csvName() string { return fmt.Sprintf("table-%d.csv", p.Number) }

// Written describes what Write wrote.
type Written struct {
	Files   []string `json:"files"`
	Cells   int      `json:"cells"`
	Done    int      `json:"done"`
	Failed  int      `json:"failed"`
	Tables  []*Table `json:"tables"`
	Figures []string `json:"figures"` // the figures among Files
}

// Write writes all tables and figures to a folder and replaces an earlier report.
func (r *Document) Write(out string) (*Written, error) {
	doc := r.document()
	w := &Written{Cells: len(r.Plan.Cells), Done: r.done, Failed: len(r.failed)}
	contents := map[string][]byte{markdownFile: doc.as(markdown), laTeXFile: doc.as(latex), HTMLFile: doc.as(page),
		csvFile: r.csv()}
	var names []string
	for _, p := range doc.Parts {
		if p.Table != nil {
			w.Tables = append(w.Tables, p.Table)
			if p.Table.complete != nil {
				names = append(names, p.csvName())
				contents[p.csvName()] = csvText(p.Table.complete)
			}
			continue
		}
		name := FiguresFolder + "/" + p.Figure.Name + ".svg"
		names = append(names, name)
		contents[name] = p.Figure.SVG
	}
	names = append(names, markdownFile, laTeXFile, HTMLFile, csvFile)
	if contents[trialsFile] = r.trialsCSV(); contents[trialsFile] != nil {
		names = append(names, trialsFile)
	}
	folder, err := fileio.LockFolder(out)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	if err := folder.Mark.CheckKind(out, fileio.ReportFolder); err != nil {
		return nil, err
	}
	fresh := folder.Mark == nil
	if err := folder.Claim(fileio.ReportFolder, names, nil); err != nil {
		return nil, err
	}
	for _, name := range names {
		path := filepath.Join(out, name)
		if err := fileio.Replace(path, []byte(diag.CleanText(string(contents[name])))); err != nil {
			if fresh {
				_ = folder.Clear() // the first error is more informative
			}
			return nil, err
		}
		w.Files = append(w.Files, path)
		if strings.HasPrefix(name, FiguresFolder+"/") {
			w.Figures = append(w.Figures, path)
		}
	}
	return w, nil
}

// document makes all parts of the report.
func (r *Document) document() *document {
	e := r.Experiment
	doc := &document{Title: e.Name.V, Description: e.Description.V, Status: r.status(), Facts: r.notes(),
		Failures: r.failures()}
	tables, figures := 0, 0
	table := func(t *Table) {
		if len(t.Rows) == 0 { // no cell of it is in the plan, or there is no grid
			for _, text := range t.Missing {
				if !slices.Contains(doc.Facts, text) { // a table and a figure may lack the same
					doc.Facts = append(doc.Facts, text)
				}
			}
			return
		}
		tables++
		p := part{Number: tables, Table: t}
		if t.complete != nil {
			t.Notes = append(t.Notes, fmt.Sprintf("These are the pairs of the learner with the most wins less losses; the file "+
				"%s has all %d pairs.", p.csvName(), len(t.complete)-1))
		}
		doc.Parts = append(doc.Parts, p)
	}
	figure := func(made []figure) {
		for i := range made {
			figures++
			made[i].Name = fmt.Sprintf("figure-%d", figures)
			doc.Parts = append(doc.Parts, part{Number: figures, Figure: &made[i]})
		}
	}
	for _, it := range r.items() {
		switch it.Kind {
		case definition.TableData:
			table(r.dataTable(&it))
			continue
		case definition.FigureAttention:
			figure(r.attentionFigures(&it))
			continue
		case definition.FigureSearch:
			figure(r.searchFigures(&it))
			continue
		}
		for _, m := range r.measures() {
			t, made := r.forMeasure(m).makeItem(&it)
			if t != nil {
				table(t)
			}
			figure(made)
		}
	}
	table(r.searchTable())
	return doc
}

// makeItem makes the table or the figures of an item for the measure of r.
func (r *Document) makeItem(it *definition.Item) (*Table, []figure) {
	switch it.Kind {
	case definition.TableAccuracy:
		return r.valuesTable(it, false), nil
	case definition.TablePublished:
		return r.valuesTable(it, r.measure.Name == measure.Accuracy), nil
	case definition.TableAcross:
		return r.acrossTable(it), nil
	case definition.TablePairs:
		return r.pairsTable(it), nil
	case definition.TableRanks:
		return r.ranksTable(it), nil
	case definition.FigureRanks:
		if made := r.rankFigure(it); made != nil {
			return nil, made
		}
		return &Table{Missing: r.ranksTable(it).Missing}, nil
	case definition.FigureSplits:
		return nil, r.splitsFigure(it)
	case definition.FigureR:
		return nil, r.rFigure(it)
	}
	return nil, r.varyFigures(it)
}
