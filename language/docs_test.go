// The tables of the spec reference are those of the code.

package language

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/miplc/miplc/internal/testkit/testsupport"
	"github.com/miplc/miplc/language/schema"
	"github.com/miplc/miplc/specs"
)

const reference = "../docs/spec-reference.md"

// TestReference compares the tables of the reference with those generated from the code. Every table
// must be in the reference.
func TestReference(t *testing.T) { testsupport.CheckLanguageTables(t, reference, referenceTables()) }

// TestReferenceExamples parses every YAML example of the reference and of the guide. Examples without a
// name or a model get one.
func TestReferenceExamples(t *testing.T) {
	var src []byte
	for _, page := range []string{reference, "../docs/spec.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		src = append(src, text...)
	}
	examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(src), -1)
	if len(examples) < 7 {
		t.Fatalf("only %d examples", len(examples))
	}
	for _, e := range examples {
		text := e[1]
		if !regexp.MustCompile(`(?m)^name:`).MatchString(text) {
			text = "name: example\n" + text
		}
		if !regexp.MustCompile(`(?m)^(model|extends|learner):`).MatchString(text) {
			text += strings.TrimPrefix(small, "name: x\n")
		}
		s, err := Parse("example.yaml", []byte(text))
		if err != nil {
			t.Errorf("%v\nin\n%s", err, text)
			continue
		}
		checkRoundTrip(t, s)
	}
}

func referenceTables() map[string]string {
	tables := map[string]string{
		"top":            testsupport.Reference(append([]schema.Row{schema.ExtendsRow}, specRows...)),
		"data":           testsupport.Reference(dataRows),
		"data.generated": testsupport.Reference(generatedRows),
		"data.columns":   testsupport.Reference(columnRows),
		"data.encoder":   testsupport.Reference(encoderRows), "data.encoder.input": testsupport.Reference(encoderInputRows),
		"data.split":      testsupport.Reference(splitRows),
		"model":           testsupport.Reference(modelRows),
		"params":          testsupport.Reference(paramRows),
		"defined":         testsupport.Reference(functionRows),
		"weights":         testsupport.Reference(weightsRows),
		"train":           testsupport.Reference(without(trainRows, slices.Concat(optimizerKeys, scheduleKeys, bestKeys)...)),
		"train.optimizer": testsupport.Reference(only(trainRows, optimizerKeys...)),
		"train.schedule":  testsupport.Reference(only(trainRows, scheduleKeys...)),
		"train.best":      testsupport.Reference(only(trainRows, bestKeys...)),
		"train.stopping":  testsupport.Reference(stoppingRows),
		"train.init":      testsupport.Reference(initRows),
		"export":          testsupport.Reference(exportRows),
		"search":          testsupport.Reference(schema.Find(specRows, "search").Rows),
		"blocks":          entryTable(Blocks),
		"losses":          entryTable(LossTerms),
		"learners":        entryTable(learnerKinds),
		"sizes":           nameTable(sizeNames),
		"names":           nameTable(append(append([]meaning(nil), lossOnlyNames...), outputNames...)),
		"epoch":           nameTable(epochNames),
		"made":            madeTable(),
		"functions":       functionReference(),
		"shipped":         shippedTable(),
	}
	return tables
}

// Keys of train that the reference lists in tables of their own.
var (
	optimizerKeys = []string{"optimizer", "lr", "momentum", "nesterov", "beta1", "beta2", "alpha", "epsilon",
		"weight_decay"}
	scheduleKeys = []string{"schedule", "warmup", "decay_every", "decay_at", "decay_factor", "decay_patience",
		"decay_measure"}
	bestKeys = []string{"best", "early_stopping", "refit"}
)

// only returns the rows with these names.
func only(rows []schema.Row, names ...string) []schema.Row {
	return slices.DeleteFunc(slices.Clone(rows), func(r schema.Row) bool { return !slices.Contains(names, r.Name) })
}

// without returns the rows with other names.
func without(rows []schema.Row, names ...string) []schema.Row {
	return slices.DeleteFunc(slices.Clone(rows), func(r schema.Row) bool { return slices.Contains(names, r.Name) })
}

func entryTable(entries []Kind) string {
	var b strings.Builder
	b.WriteString("\n| word | argument | value | default | meaning |\n|---|---|---|---|---|\n")
	for _, e := range entries {
		fmt.Fprintf(&b, "| **`%s`** | | | | %s |\n", e.Name, testsupport.Cell(e.Doc))
		for i := range e.args {
			r := &e.args[i]
			name := "`" + r.Name + "`"
			if r.Main {
				name += " (main)"
			}
			fmt.Fprintf(&b, "| | %s | %s | %s | %s |\n", name, testsupport.ValueText(r),
				testsupport.Cell(testsupport.DefaultText(r)),
				testsupport.Cell(r.Doc))
		}
	}
	return b.String() + "\n"
}

func nameTable(names []meaning) string {
	var b strings.Builder
	b.WriteString("\n| name | meaning |\n|---|---|\n")
	for _, n := range names {
		fmt.Fprintf(&b, "| `%s` | %s |\n", n.Name, testsupport.Cell(n.Doc))
	}
	return b.String() + "\n"
}

func madeTable() string {
	var b strings.Builder
	b.WriteString("\n| block | names |\n|---|---|\n")
	for i := range Blocks {
		if k := &Blocks[i]; len(k.Results) > 0 {
			fmt.Fprintf(&b, "| `%s` | `%s` |\n", k.Name, strings.Join(k.Results, "`, `"))
		}
	}
	return b.String() + "\n"
}

func functionReference() string {
	var b strings.Builder
	b.WriteString("\n| function | meaning |\n|---|---|\n")
	for i := range Functions {
		f := &Functions[i]
		fmt.Fprintf(&b, "| `%s` | %s |\n", f.Signature(), testsupport.Cell(f.Doc))
	}
	return b.String() + "\n"
}

var variant = regexp.MustCompile(`-(mean|maxmin)(-mlp)?$`)

// shippedTable lists the shipped specs. Variants of a method on one vector per bag share a row.
func shippedTable() string {
	var b strings.Builder
	b.WriteString("\n| name | what it is |\n|---|---|\n")
	all := specs.Models()
	for len(all) > 0 {
		group := all[:1]
		if method := variant.ReplaceAllString(all[0], ""); method != all[0] {
			for len(group) < len(all) && variant.ReplaceAllString(all[len(group)], "") == method {
				group = all[:len(group)+1]
			}
		}
		all = all[len(group):]
		s, err := Load(schema.Builtin + group[0])
		if err != nil {
			continue // TestShippedSpecs reports it
		}
		doc := s.Description.V
		if len(group) > 1 {
			doc, _, _ = strings.Cut(doc, " on ")
			doc, _, _ = strings.Cut(doc, " with ")
			doc += " on one vector per bag"
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", strings.Join(group, "`, `"), testsupport.Cell(doc))
	}
	return b.String() + "\n"
}
