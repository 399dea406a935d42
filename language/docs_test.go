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
		"top":            schema.Reference(append([]schema.Row{schema.ExtendsRow}, specRows...)),
		"data":           schema.Reference(dataRows),
		"data.generated": schema.Reference(generatedRows),
		"data.columns":   schema.Reference(columnRows),
		"data.encoder":   schema.Reference(encoderRows), "data.encoder.input": schema.Reference(encoderInputRows),
		"data.split":      schema.Reference(splitRows),
		"model":           schema.Reference(modelRows),
		"params":          schema.Reference(paramRows),
		"defined":         schema.Reference(functionRows),
		"weights":         schema.Reference(weightsRows),
		"train":           schema.Reference(without(trainRows, slices.Concat(optimizerKeys, scheduleKeys, bestKeys)...)),
		"train.optimizer": schema.Reference(only(trainRows, optimizerKeys...)),
		"train.schedule":  schema.Reference(only(trainRows, scheduleKeys...)),
		"train.best":      schema.Reference(only(trainRows, bestKeys...)),
		"train.stopping":  schema.Reference(stoppingRows),
		"train.init":      schema.Reference(initRows),
		"export":          schema.Reference(exportRows),
		"search":          schema.Reference(schema.Find(specRows, "search").Rows),
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
		fmt.Fprintf(&b, "| **`%s`** | | | | %s |\n", e.Name, schema.Cell(e.Doc))
		for i := range e.args {
			r := &e.args[i]
			name := "`" + r.Name + "`"
			if r.Main {
				name += " (main)"
			}
			fmt.Fprintf(&b, "| | %s | %s | %s | %s |\n", name, schema.ValueText(r), schema.Cell(schema.DefaultText(r)),
				schema.Cell(r.Doc))
		}
	}
	return b.String() + "\n"
}

func nameTable(names []meaning) string {
	var b strings.Builder
	b.WriteString("\n| name | meaning |\n|---|---|\n")
	for _, n := range names {
		fmt.Fprintf(&b, "| `%s` | %s |\n", n.Name, schema.Cell(n.Doc))
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
		fmt.Fprintf(&b, "| `%s` | %s |\n", f.Signature(), schema.Cell(f.Doc))
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
		fmt.Fprintf(&b, "| `%s` | %s |\n", strings.Join(group, "`, `"), schema.Cell(doc))
	}
	return b.String() + "\n"
}
