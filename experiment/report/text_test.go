// JSON texts of results and datasets, from which the tests of reports write folders of experiments.

package report

import (
	"encoding/json"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/experiment"
)

func jsonText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func setText(name string, r int, s data.Stats) string {
	s.Name = ""
	f := experiment.SetFacts{Name: name, R: r, Domain: "image & more", Source: "made up", Stats: s}
	return jsonText(f)
}
