package language

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/miplc/miplc/internal/golden"
	"github.com/miplc/miplc/specs"
)

const reference = "../docs/spec.md"

var tableMark = regexp.MustCompile(`(?s)<!-- table: ([a-z.]+) -->\n.*?<!-- end -->`)

// TestReference writes the tables of the reference anew and compares; every
// table must stand in it.
func TestReference(t *testing.T) {
	src, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	tables := referenceTables()
	seen := map[string]bool{}
	got := tableMark.ReplaceAllStringFunc(string(src), func(part string) string {
		name := tableMark.FindStringSubmatch(part)[1]
		if tables[name] == "" {
			t.Errorf("there is no table %q", name)
		}
		seen[name] = true
		return fmt.Sprintf("<!-- table: %s -->\n%s<!-- end -->", name, tables[name])
	})
	for name := range tables {
		if !seen[name] {
			t.Errorf("%s lacks the table %q", reference, name)
		}
	}
	golden.Check(t, reference, []byte(got))
}

// TestReferenceExamples parses every YAML example; those without a name or a
// model get one.
func TestReferenceExamples(t *testing.T) {
	src, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
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
		s, err := Parse("spec.md", []byte(text), Options{})
		if err != nil {
			t.Errorf("%v\nin\n%s", err, text)
			continue
		}
		checkRoundTrip(t, s)
	}
}

func referenceTables() map[string]string {
	tables := map[string]string{
		"top":            keyTable(append([]Row{extendsRow}, language...)),
		"data":           keyTable(dataRows),
		"data.generated": keyTable(generatedRows),
		"data.split":     keyTable(splitRows),
		"model":          keyTable(modelRows),
		"params":         keyTable(paramRows),
		"weights":        keyTable(weightsRows),
		"train":          keyTable(trainRows),
		"export":         keyTable(exportRows),
		"blocks":         entryTable(blockEntries()),
		"losses":         entryTable(lossEntries()),
		"learners":       entryTable(learnerEntries()),
		"extents":        nameTable(extentNames),
		"names":          nameTable(append(append([]Name(nil), trainingNames...), outputNames...)),
		"epoch":          nameTable(epochNames),
		"made":           madeTable(),
		"functions":      functionTable(),
		"shipped":        shippedTable(),
	}
	return tables
}

func keyTable(rows []Row) string {
	var b strings.Builder
	b.WriteString("\n| key | value | default | meaning |\n|---|---|---|---|\n")
	for i := range rows {
		r := &rows[i]
		def := "`" + r.Default + "`"
		switch {
		case r.Required:
			def = "required"
		case r.Default == "":
			def = ""
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r.Name, valueText(r), def, cell(r.Doc))
	}
	return b.String() + "\n"
}

func valueText(r *Row) string {
	if len(r.Choices) > 0 {
		return "`" + strings.Join(r.Choices, "`, `") + "`"
	}
	if r.Type != wholeList && r.In.limited() {
		return r.describeType() + ", " + r.In.String()
	}
	return r.describeType()
}

func entryTable(entries []schemaEntry) string {
	var b strings.Builder
	b.WriteString("\n| word | argument | value | default | meaning |\n|---|---|---|---|---|\n")
	for _, e := range entries {
		fmt.Fprintf(&b, "| **`%s`** | | | | %s |\n", e.word, cell(e.doc))
		for i := range e.args {
			r := &e.args[i]
			def := ""
			switch {
			case r.Required:
				def = "required"
			case r.Default != "":
				def = "`" + r.Default + "`"
			}
			name := "`" + r.Name + "`"
			if r.Main {
				name += " (main)"
			}
			fmt.Fprintf(&b, "| | %s | %s | %s | %s |\n", name, valueText(r), def, cell(r.Doc))
		}
	}
	return b.String() + "\n"
}

func nameTable(names []Name) string {
	var b strings.Builder
	b.WriteString("\n| name | meaning |\n|---|---|\n")
	for _, n := range names {
		fmt.Fprintf(&b, "| `%s` | %s |\n", n.Name, cell(n.Doc))
	}
	return b.String() + "\n"
}

func madeTable() string {
	var b strings.Builder
	b.WriteString("\n| block | names |\n|---|---|\n")
	for i := range Blocks {
		if k := &Blocks[i]; len(k.Makes) > 0 {
			fmt.Fprintf(&b, "| `%s` | `%s` |\n", k.Name, strings.Join(k.Makes, "`, `"))
		}
	}
	return b.String() + "\n"
}

func functionTable() string {
	var b strings.Builder
	b.WriteString("\n| function | meaning |\n|---|---|\n")
	for i := range Functions {
		f := &Functions[i]
		fmt.Fprintf(&b, "| `%s` | %s |\n", f.Signature(), cell(f.Doc))
	}
	return b.String() + "\n"
}

func shippedTable() string {
	var b strings.Builder
	b.WriteString("\n| name | what it is |\n|---|---|\n")
	for _, name := range specs.Models() {
		s, err := Load(builtin+name, Options{})
		if err != nil {
			continue // TestShippedSpecs reports it
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", name, cell(s.Description.V))
	}
	return b.String() + "\n"
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
