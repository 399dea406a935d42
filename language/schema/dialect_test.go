// What every language of this package does, shown with a small one: recipes of a bakery.

package schema_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language/schema"
)

type recipe struct {
	Name  schema.Str
	Style string
	Oven  oven
	Icing *struct{ Kind, Color schema.Str } `json:",omitempty"`
	Steps []step                            `json:",omitempty"`
	Sizes []int                             `json:",omitempty"`
	Notes []string                          `json:",omitempty"` // of the custom key set
}

type oven struct {
	Heat  schema.Float
	Fan   schema.Bool
	Racks schema.Ints
}

type step struct {
	Name    schema.Str
	Minutes schema.Int
}

var recipes = &schema.Dialect{
	Noun: "recipe", WithArticle: "a recipe", Start: "a recipe starts with name:",
	ShippedNames: func() []string { return []string{"bun", "rye"} },
	Source: func(name string) ([]byte, bool) {
		text, found := map[string]string{"rye": "name: rye\noven: {heat: 220}", "bun": "extends: rye.yaml\nname: bun"}[name]
		return []byte(text), found
	},
	Literal:   func(key string) bool { return key == "set" },
	Arguments: func(string) []schema.Row { return nil },
	Synonyms:  map[string][]string{"temperature": {"heat"}},
	Advice:    map[string]string{"gas": "a recipe has no gas: heat is in degrees"},
	Related:   map[string][]string{"oven": {"style"}},
	Rows: schema.Fields[recipe]([]schema.Row{
		{Name: "name", Required: true, In: schema.Closed(1, 12), Doc: "Name of the recipe."},
		{Name: "style", Default: "bread", Choices: []string{"bread", "cake"}},
		{Name: "oven", Rows: []schema.Row{
			{Name: "heat", Default: "180", In: schema.PositiveUpTo(300)},
			{Name: "fan", Default: "true"}, {Name: "racks", In: schema.Closed(1, 5)},
		}},
		{Name: "icing", Rows: []schema.Row{{Name: "kind", Main: true, Required: true}, {Name: "color", Default: "white"}}},
		{Name: "steps", Rows: []schema.Row{{Name: "name", Required: true}, {Name: "minutes", In: schema.AtLeast(1)}}},
		{Name: "sizes", In: schema.AtLeast(1)},
		{Name: "set", Type: schema.Custom, Field: func(of any) any { return of }, Custom: &schema.CustomType{
			Read: func(_ *schema.Reader, _ string, _, n *schema.Node, to any) {
				for i, key := range n.Keys() {
					to.(*recipe).Notes = append(to.(*recipe).Notes, key.Raw()+"="+n.Items()[i].Flow())
				}
			}}},
	}),
}

// read reads x.yaml in a new folder of files; names of files end with .yaml.
func read(t *testing.T, text string, files map[string]string, set ...string) (*recipe, *schema.Document, error) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, content := range files {
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r := &recipe{}
	doc, err := recipes.Parse("x.yaml", []byte(text), schema.Overrides(set), r)
	return r, doc, err
}

const twoSteps = "name: x\nsteps:\n  - {name: mix, minutes: 3}\n  - name: bake\n"

// Values come from the file, above the files that it extends, below --set, and defaults fill the rest.
func TestMerging(t *testing.T) {
	base := map[string]string{
		"base.yaml": "name: base\nstyle: cake\noven: {heat: 200, racks: [1, 2]}\nicing: {kind: lemon, color: red}\n" +
			"set: {a.b: {v: 1}, c: 2}\n",
		"top.yaml": "extends: base.yaml\noven: {fan: false}\n",
		"rye.yaml": "extends: builtin:rye\nstyle: cake\n",
	}
	for _, c := range []struct{ what, text, set, want string }{
		{"defaults", "name: x", "", `"Style":"bread","Oven":{"Heat":180,"Fan":true,"Racks":null}`},
		{"maps are merged key by key, lists and values replaced", "extends: top.yaml\noven: {racks: [3]}\nstyle: bread", "",
			`{"Name":"base","Style":"bread","Oven":{"Heat":200,"Fan":false,"Racks":[3]},"Icing":{`},
		{"a map of another kind replaces", "extends: base.yaml\nicing: {kind: rum}", "", `{"Kind":"rum","Color":"white"}`},
		{"one of the same kind does not", "extends: base.yaml\nicing: {kind: lemon}", "", `{"Kind":"lemon","Color":"red"}`},
		{"a value replaces a map", "extends: base.yaml\nicing: rum", "icing={kind: mint}", `{"Kind":"mint","Color":"white"}`},
		{"a literal map keeps dots in its keys", "extends: base.yaml\nset: {a.b: {w: 3}, d.e: 4}", "set.c=5",
			`"Notes":["a.b={w: 3}","c=5","d.e=4"]`},
		{"a file before the shipped one", "extends: rye.yaml", "", `{"Name":"rye","Style":"cake"`},
		{"shipped files extend only shipped ones", "extends: bun", "", `{"Name":"bun","Style":"bread","Oven":{"Heat":220`},
		{"--set of a key", "extends: base.yaml", "oven.heat=90.5", `"Oven":{"Heat":90.5,"Fan":true,"Racks":[1,2]}`},
		{"--set of a missing section", "name: x", "oven.fan=false", `"Oven":{"Heat":180,"Fan":false,"Racks":null}`},
		{"--set of a map", "extends: base.yaml", "oven={fan: false}", `"Oven":{"Heat":200,"Fan":false,"Racks":[1,2]}`},
		{"--set of a list replaces it", "extends: base.yaml", "oven.racks=[5]", `"Racks":[5]`},
		{"--set of an entry by its name", twoSteps, "steps.bake.minutes=40",
			`"Steps":[{"Name":"mix","Minutes":3},{"Name":"bake","Minutes":40}]`},
		{"one value or several", "name: x\nsizes: 3", "", `"Sizes":[3]`},
	} {
		r, doc, err := read(t, c.text, base, strings.FieldsFunc(c.set, func(c rune) bool { return c == ';' })...)
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		got, _ := json.Marshal(r)
		if !strings.Contains(string(got), c.want) {
			t.Errorf("%s:\n%s, want\n%s", c.what, got, c.want)
		}
		var again recipe // the merged document needs neither the other files nor --set
		t.Chdir(t.TempDir())
		_, err = recipes.Parse("again.yaml", doc.Text(), nil, &again)
		if text, _ := json.Marshal(&again); err != nil || string(text) != string(got) {
			t.Errorf("%s: the document\n%s\nhas the values\n%s, want\n%s: %v", c.what, doc.Text(), text, got, err)
		}
	}
}

// Every value and every key knows where the user wrote it; a default was written nowhere.
func TestPositions(t *testing.T) {
	files := map[string]string{"base.yaml": "# the base\r\nname: base\r\noven:\r\n  racks: [1]\r\n  heat: 200\r\n"}
	r, doc, err := read(t, "extends: base.yaml\nicing: rum\nsteps:\n- name: 'hä'\n  minutes: 2\n", files, "oven.fan=false")
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		pos  diag.Pos
		want string
	}{
		"inherited":        {r.Oven.Heat.Pos, "base.yaml:5:9"},
		"main key":         {r.Icing.Kind.Pos, "x.yaml:2:8"},
		"default":          {r.Icing.Color.Pos, ""},
		"--set":            {r.Oven.Fan.Pos, "--set oven.fan=false"},
		"in an entry":      {r.Steps[0].Minutes.Pos, "x.yaml:5:12"},
		"key":              {doc.KeyPos("icing"), "x.yaml:2:1"},
		"key of a section": {doc.KeyPos("oven.racks"), "base.yaml:4:3"},
		"document":         {doc.Pos, "x.yaml:1:1"},
	} {
		if c.pos.String() != c.want {
			t.Errorf("%s: %q, want %q", what, c.pos, c.want)
		}
	}
	if r.Icing.Color.Written() || !slices.Equal(doc.Files(), []string{"base.yaml", "x.yaml"}) {
		t.Errorf("the color is written: %v; files %q", r.Icing.Color.Written(), doc.Files())
	}
	if at := doc.AddSource(diag.Errorf(r.Oven.Heat.Pos, "hot")); at.Line != "  heat: 200" || at.Width != 3 {
		t.Errorf("the line %q, %d columns", at.Line, at.Width)
	}
}

// A conflict with an inherited value is reported at the line of the user that causes it.
func TestOrigin(t *testing.T) {
	files := map[string]string{"base.yaml": "name: base\noven: {heat: 200, racks: [1]}\n"}
	for _, c := range []struct{ text, set, want string }{
		{"extends: base.yaml\noven: {fan: false}", "", "x.yaml:2:8: oven.fan conflicts with an inherited setting: hot"},
		{"extends: base.yaml\nstyle: cake", "", "x.yaml:2:1: style conflicts with an inherited setting: hot"}, // see Related
		{"extends: base.yaml\noven: {fan: false, racks: [2]}", "", "x.yaml:2:1: oven conflicts with an inherited setting"},
		{"extends: base.yaml\nname: x", "", "base.yaml:2:14: hot"},
		{"extends: base.yaml\noven: {heat: 250}", "", "x.yaml:2:14: hot"},
		{"extends: base.yaml", "oven.fan=false", "--set oven.fan=false: oven.fan conflicts with an inherited setting: hot"},
		{"name: x\noven: {heat: 250}", "", "x.yaml:2:14: hot"},
	} {
		r, doc, err := read(t, c.text, files, strings.Fields(c.set)...)
		if err != nil {
			t.Fatal(err)
		}
		doc.MarkSound(func(file string) bool { return file == "base.yaml" })
		at := doc.AtUserLine(diag.Errorf(r.Oven.Heat.Pos, "hot"))
		if !strings.HasPrefix(at.Error(), c.want) {
			t.Errorf("%q %s: %s, want %s", c.text, c.set, at.Error(), c.want)
		}
		if moved := strings.Contains(c.want, "conflicts"); moved != (len(at.Notes) == 1) {
			t.Errorf("%q: notes %q", c.text, at.Notes)
		}
		heat := r.Oven.Heat.Pos
		inherited := heat.File == "base.yaml"
		if doc.Inherited(heat) != inherited || doc.ExtendedBy(heat, diag.Pos{File: "x.yaml"}) != inherited {
			t.Errorf("%q: %s is inherited: %v", c.text, heat, !inherited)
		}
	}
}

// Every mistake is reported in one run, in the order of the file, at its place and with what was probably meant.
func TestMistakes(t *testing.T) {
	for _, c := range []struct {
		text, set string
		want      []string // errors, and parts of their notes
	}{
		{"nam: x\noven: {heet: 1, temperature: 2, gas: 3, style: 4, color: 5}", "", []string{
			`x.yaml:1:1: unknown key "nam" at the top level (did you mean "name"?)`,
			`x.yaml:2:8: unknown key "heet" in oven (did you mean "heat"?)`,
			`x.yaml:2:17: unknown key "temperature" in oven (did you mean "heat"?)`,
			`x.yaml:2:33: unknown key "gas" in oven; a recipe has no gas`,
			`x.yaml:2:41: unknown key "style" in oven; style is a key at the top level`,
			`x.yaml:2:51: unknown key "color" in oven; color is a key of icing`}},
		{"name: x\nstyle: cke\noven: {heat: 0, fan: yes, racks: [1, 9, 2.5]}", "", []string{
			`x.yaml:2:8: style cannot be "cke" (did you mean "cake"?)`,
			`x.yaml:3:14: oven.heat must be between 0 and 300 (0 excluded), not 0`,
			`x.yaml:3:22: oven.fan must be true or false, not the text "yes" (did you mean "true"?)`,
			`x.yaml:3:38: oven.racks entry 2 must be between 1 and 5, not 9`,
			`x.yaml:3:41: oven.racks entry 3 must be a whole number, not the number 2.5`}},
		{"oven: [1]\nsteps: [{minutes: 0}, x]\nicing: {color: red}\nsizes: []", "", []string{
			`x.yaml:1:1: name is missing; Name of the recipe.`,
			`x.yaml:1:7: oven must be a map, not a list; leave out the dashes`,
			`x.yaml:2:9: steps entry 1.name is missing`,
			`x.yaml:2:19: steps entry 1.minutes must be at least 1, not 0`,
			`x.yaml:2:23: steps entry 2 must be a map, not the text "x"`,
			`x.yaml:3:8: icing.kind is missing`, `x.yaml:4:8: sizes is empty`}},
		{"name: a name that is too long\nstyle:\noven: {heat: '1'}\nsizes: [1, 1]", "", []string{
			`x.yaml:1:7: name must have at most 12 characters`, `x.yaml:2:1: style has no value; leave the key out`,
			`x.yaml:3:14: oven.heat must be a number, not the text "1"; leave out the quotes`,
			`x.yaml:4:12: 1 is listed twice in sizes`}},
		{twoSteps, "steps.bak.minutes=1;oven.heat;oven.heet=1;steps.mix.minutes=[;extends=rye;.x=1;style.x=1", []string{
			`--set .x=1: the key ".x" is empty or has an empty part`, `--set extends=rye: extends cannot be set from outside`,
			`--set oven.heat: no value; write oven.heat=VALUE`,
			`--set oven.heet=1: unknown key "heet" in oven (did you mean "heat"?)`,
			`--set steps.bak.minutes=1: the list has no bak, only mix, bake (did you mean "bake"?)`,
			`--set steps.mix.minutes=[: YAML syntax`, `--set style.x=1: style must be one of bread, cake, not a map`}},
		{"name: x\nname: y\noven: {heat: 1_0, racks: 3}", "", []string{`x.yaml:2:1: `, `x.yaml:3:14: oven.heat must be`,
			`x.yaml:3:26: oven.racks must be a list of whole numbers, not the number 3; write [3]`}},
		{"extends: ryee\nname: x", "", []string{`x.yaml:1:10: there is no file ryee and no shipped recipe of that name`}},
		{"extends: cycle.yaml", "", []string{`cycle.yaml:1:10: extends forms a cycle; cycle.yaml extends cycle.yaml`}},
		{"style: cake\nicing: {color: red}", "oven.heat=1;icing.color=blue", []string{
			`x.yaml:1:1: name is missing`, `x.yaml:2:8: icing.kind is missing`}},
	} {
		_, _, err := read(t, c.text, map[string]string{"cycle.yaml": "extends: cycle.yaml\n"},
			strings.FieldsFunc(c.set, func(c rune) bool { return c == ';' })...)
		list, _ := diag.ListOf(err)
		var got []string
		for _, d := range list {
			got = append(got, strings.Join(append([]string{d.Error()}, d.Notes...), "; "))
		}
		if !slices.EqualFunc(got, c.want, func(got, want string) bool {
			text, note, _ := strings.Cut(want, "; ")
			return strings.HasPrefix(got, text) && strings.Contains(got, note)
		}) {
			t.Errorf("%q %s:\n%s\nwant\n%s", c.text, c.set, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}
