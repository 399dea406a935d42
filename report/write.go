package report

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/miplc/miplc/experiment"
	"github.com/miplc/miplc/runs"
)

// Names inside the folder of a report.
const (
	markdownFile  = "report.md"
	laTeXFile     = "report.tex"
	HTMLFile      = "report.html"
	FiguresFolder = "figures"
)

// document is a report with everything made: its parts in their order.
type document struct {
	Title, Description, Status string
	Parts                      []part
	Facts                      []string
	Failures                   []string
}

// part is a table or a figure.
type part struct {
	Number int // of tables or of figures, from 1
	Table  *Table
	Figure *figure
}

// Written is what Write made.
type Written struct {
	Files  []string `json:"files"`
	Cells  int      `json:"cells"`
	Done   int      `json:"done"`
	Failed int      `json:"failed"`
	Tables []*Table `json:"tables"`
}

// Write makes all tables and figures and writes them into a folder.
func (r *Report) Write(out string) (*Written, error) {
	doc, err := r.document()
	if err != nil {
		return nil, err
	}
	page, err := doc.html()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(out, FiguresFolder), 0o755); err != nil {
		return nil, err
	}
	w := &Written{Cells: len(r.Plan.Cells), Done: r.done, Failed: len(r.failed)}
	write := func(name string, content []byte) error {
		path := filepath.Join(out, name)
		w.Files = append(w.Files, path)
		return runs.WriteFile(path, content)
	}
	for _, p := range doc.Parts {
		if p.Table != nil {
			w.Tables = append(w.Tables, p.Table)
			continue
		}
		if err := write(filepath.Join(FiguresFolder, p.Figure.Name+".svg"), p.Figure.SVG); err != nil {
			return nil, err
		}
	}
	for _, f := range []struct {
		name string
		text []byte
	}{{markdownFile, doc.markdown()}, {laTeXFile, doc.latex()}, {HTMLFile, page}} {
		if err := write(f.name, f.text); err != nil {
			return nil, err
		}
	}
	return w, removeOthers(filepath.Join(out, FiguresFolder), w.Files)
}

// removeOthers removes figures of an earlier report that this one lacks.
func removeOthers(folder string, written []string) error {
	old, err := filepath.Glob(filepath.Join(folder, "figure-*.svg"))
	if err != nil {
		return err
	}
	for _, path := range old {
		if !slices.Contains(written, path) {
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *Report) document() (*document, error) {
	e := r.Experiment
	doc := &document{Title: e.Name.V, Description: e.Description.V, Status: r.status(), Facts: r.facts(), Failures: r.failures()}
	tables, figures := 0, 0
	table := func(t *Table) {
		if len(t.Rows) == 0 { // nothing of it is in the plan
			return
		}
		tables++
		doc.Parts = append(doc.Parts, part{Number: tables, Table: t})
	}
	for _, it := range r.items() {
		var made []figure
		var err error
		switch it.Kind {
		case experiment.TableData:
			table(r.dataTable(&it))
		case experiment.TableAccuracy:
			table(r.accuracyTable(&it, false))
		case experiment.TableBeside:
			table(r.accuracyTable(&it, true))
		case experiment.TableAcross:
			table(r.acrossTable(&it))
		case experiment.FigureAttention:
			made, err = r.attentionFigures(&it)
		case experiment.FigureR:
			made, err = r.rFigure(&it)
		case experiment.FigureVary:
			made, err = r.varyFigures(&it)
		}
		if err != nil {
			return nil, err
		}
		for i := range made {
			figures++
			made[i].Name = fmt.Sprintf("figure-%d", figures)
			doc.Parts = append(doc.Parts, part{Number: figures, Figure: &made[i]})
		}
	}
	if t := r.settingsTable(); t != nil {
		table(t)
	}
	return doc, nil
}
