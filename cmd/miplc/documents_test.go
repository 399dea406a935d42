// The specs, commands and Go programs in README.md and docs work as printed.

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/experiment"
	"github.com/miplc/miplc/experiment/definition"
	"github.com/miplc/miplc/internal/libraries"
	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/runs/prepare"
)

var (
	yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")
	yamlName  = regexp.MustCompile(`(?m)^name: (\S+)$`)
)

// TestDocumentedSpecs checks that the specs and experiments in these pages are valid.
func TestDocumentedSpecs(t *testing.T) {
	shown := 0
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	for _, document := range []string{"README.md", "docs/tutorial.md", "docs/spec.md", "docs/data.md",
		"docs/large-data.md", "docs/encoders.md"} {
		text, err := os.ReadFile(filepath.Join(root, document))
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range yamlBlock.FindAllStringSubmatch(string(text), -1) {
			shown++
			file := "example.yaml"
			if name := yamlName.FindStringSubmatch(block[1]); name != nil { // later examples may name it
				file = name[1] + ".yaml"
			}
			if err := os.WriteFile(file, []byte(block[1]), 0o644); err != nil {
				t.Fatal(err)
			}
			if definition.Language.CountKnownKeys(file) > language.Dialect.CountKnownKeys(file) {
				_, err = experiment.Validate(file)
			} else {
				_, err = prepare.Validate(file, nil, bagfile.Folder{})
			}
			if err != nil {
				t.Errorf("%s: %v\nin\n%s", document, err, block[1])
			}
		}
	}
	if shown < 4 {
		t.Errorf("found only %d examples", shown)
	}
}

var (
	pageStep = regexp.MustCompile("(?m)^(?: {4}((?:miplc|awk) .*)|<!-- file: (\\S+) " +
		"-->\n```yaml\n((?s:.*?))```|```text\n((?s:.*?))```)$")
	number = regexp.MustCompile(`[0-9][0-9.e+-]*`)
	gap    = regexp.MustCompile(` +`)
)

// TestTutorial runs the commands of docs/tutorial.md.
func TestTutorial(t *testing.T) { testPage(t, "tutorial.md", 10, 3) }

// TestSpecGuide runs the commands of docs/spec.md.
func TestSpecGuide(t *testing.T) { testPage(t, "spec.md", 5, 3) }

// testPage runs the commands of a page in order, after writing the files that it shows. Each line of a
// text block must be in the output of the command above it; only the numbers may differ, since they
// depend on the processor. The page must have at least so many commands and text blocks.
func testPage(t *testing.T, page string, atLeastCommands, atLeastOutputs int) {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + page)
	if err != nil {
		t.Fatal(err)
	}
	script := []string{"images tiles/cat/1.jpg tiles/cat/2.jpg tiles/cat/3.jpg tiles/dog/1.jpg tiles/dog/2.jpg " +
		"tiles/dog/3.jpg"}
	var files strings.Builder
	commands, outputs := 0, 0
	for _, m := range pageStep.FindAllStringSubmatch(string(text), -1) {
		command, name, content, output := m[1], m[2], m[3], m[4]
		switch {
		case name != "":
			files.WriteString("-- " + name + " --\n" + content)
		case output != "":
			outputs++
			script = append(script, outputLines(output)...)
		case !strings.HasPrefix(command, "miplc serve"): // serve runs until it is stopped
			commands++
			if strings.HasPrefix(command, "awk") { // its output goes to a file
				command = "sh -c '" + strings.ReplaceAll(command, "'", "''") + "'"
			}
			script = append(script, "exec "+command)
		}
	}
	if commands < atLeastCommands || outputs < atLeastOutputs {
		t.Fatalf("found only %d commands and %d outputs", commands, outputs)
	}
	runPage(t, script, files.String())
}

// outputLines returns the commands that look for each line of a text block.
func outputLines(output string) (script []string) {
	for line := range strings.Lines(strings.TrimSpace(output)) {
		if line = strings.TrimSuffix(line, "\n"); line != "" {
			script = append(script, "says '"+strings.ReplaceAll(line, "'", "''")+"'")
		}
	}
	return script
}

// runPage runs the script of a page with files in the txtar format and variables of the environment.
func runPage(t *testing.T, script []string, files string, variables ...string) {
	t.Helper()
	dir, library := t.TempDir(), enginetest.Library(t)
	if err := os.WriteFile(filepath.Join(dir, "page.txtar"), []byte(strings.Join(script, "\n")+"\n"+files),
		0o644); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: dir,
		Setup: func(env *testscript.Env) error {
			env.Setenv(onnxruntime.EnvLibrary, library)
			env.Setenv(libraries.EnvCache, env.WorkDir+"/cache")
			env.Vars = append(env.Vars, variables...)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"images": images, "says": says},
	})
}

var (
	goStep = regexp.MustCompile("(?m)^(?: {4}((?:miplc|go|mkdir|cd) [^#\n]*).*|(?:<!-- file: (\\S+) " +
		"-->\n)?```go\n((?s:.*?))```|```text\n((?s:.*?))```)$")
	declared = regexp.MustCompile(`(?m)^(\w+(?:, \w+)*) :=`)
	// goImports are the packages that the blocks of the page may use.
	goImports = []string{
		"context", "fmt", "log/slog", "os", "time", "github.com/miplc/miplc/data/imagebags", "github.com/miplc/miplc/runtime",
		"github.com/miplc/miplc/runtime/onnxgo", "my-service/internal/mymodel",
	}
)

// TestGoPage runs the commands and the Go code of docs/go.md in order, beginning in a folder that contains
// only the clone. A block without a file name is the body of a function with the parameters ctx, model and
// bag, which returns an error. The output of a command or of a block must contain the lines of the text
// block below it, apart from numbers. go mod tidy must not see the blocks, therefore the "_" in their paths.
func TestGoPage(t *testing.T) {
	text, err := os.ReadFile("../../docs/go.md")
	if err != nil {
		t.Fatal(err)
	}
	script := []string{"symlink miplc -> $REPO", "cd my-service", "images slide-1/1.png", "cd .."}
	var files strings.Builder
	fragments, lines := 0, 0
	for _, m := range goStep.FindAllStringSubmatch(string(text), -1) {
		command, name, code, output := m[1], m[2], m[3], m[4]
		switch {
		case name != "":
			files.WriteString("-- " + name + " --\n" + code)
		case code != "":
			fragments++
			folder := "_fragment" + strconv.Itoa(fragments)
			files.WriteString("-- my-service/" + folder + "/main.go --\n" + fragment(code, "go-run/model.onnx"))
			script = append(script, "exec go run -mod=mod ./"+folder)
		case output != "":
			says := outputLines(output)
			script, lines = append(script, says...), lines+len(says)
		case strings.HasPrefix(command, "cd ") || strings.HasPrefix(command, "mkdir "):
			script = append(script, command)
		default:
			script = append(script, "exec "+command)
		}
	}
	if fragments < 5 || lines < 4 {
		t.Fatalf("found only %d blocks and %d lines of output", fragments, lines)
	}
	runPage(t, script, files.String(), append(goToolchain(t), "GOSUMDB=off")...)
}

var readmeStep = regexp.MustCompile("(?ms)^```python\n.*?^```\n\n```text\n.*?^```$|" +
	"^ {4}(?:go run \\./cmd/)?(miplc [^#\n]*)|" +
	"^<!-- file: (\\S+) -->\n```yaml\n(.*?)^```$|^```go\n(.*?)^```$|^```text\n(.*?)^```$")

// TestReadme runs the commands and the Go code of README.md like TestTutorial and TestGoPage. The tests of the
// Python package run its Python code.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	script := []string{"exec go mod init service", "exec go work init . $REPO"}
	var files strings.Builder
	commands, programs, lines := 0, 0, 0
	for _, m := range readmeStep.FindAllStringSubmatch(string(text), -1) {
		command, name, spec, code, output := m[1], m[2], m[3], m[4], m[5]
		switch {
		case name != "":
			files.WriteString("-- " + name + " --\n" + spec)
		case code != "":
			programs++
			files.WriteString("-- service/main.go --\n" + fragment(code, "my-run/model.onnx"))
			script = append(script, "exec go run ./service", "stdout horse")
		case output != "":
			says := outputLines(output)
			script, lines = append(script, says...), lines+len(says)
		case command != "" && !strings.HasPrefix(command, "miplc serve"):
			commands++
			script = append(script, "exec "+command)
		}
	}
	if commands < 4 || programs != 1 || lines < 5 {
		t.Fatalf("found only %d commands, %d programs and %d lines of output", commands, programs, lines)
	}
	runPage(t, script, files.String(), goToolchain(t)...)
}

// fragment returns a program that runs a block of a page with a model and a bag of four features.
func fragment(code, model string) string {
	for _, m := range declared.FindAllStringSubmatch(code, -1) {
		for _, name := range strings.Split(m[1], ", ") { // the block need not use what it declares
			code += "_ = " + name + "\n"
		}
		if strings.HasSuffix(m[1], "err") {
			code += "if err != nil {\nreturn err\n}\n"
		}
	}
	body := "func run(ctx context.Context, model *runtime.Model, bag runtime.Bag) error {\n{\n" + code +
		"}\nreturn nil\n}\n" + `
func main() {
	model, err := runtime.Open("` + model + `")
	if err != nil {
		panic(err)
	}
	defer model.Close()
	bag := runtime.Bag{Instances: []float32{-1.8, 0.6, -1.4, 0.6}, N: 1}
	if err := run(context.Background(), model, bag); err != nil {
		panic(err)
	}
}
`
	program := "package main\n\n"
	for _, path := range goImports {
		if regexp.MustCompile(`\b` + path[strings.LastIndex(path, "/")+1:] + `\.`).MatchString(body) {
			program += "import \"" + path + "\"\n"
		}
	}
	return program + body
}

// says LINE fails if the output of the last command does not contain the line. It ignores numbers and
// the width of gaps.
func says(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: says LINE")
	}
	words := func(s string) string { return gap.ReplaceAllString(number.ReplaceAllString(s, "#"), " ") }
	if said := ts.ReadFile("stdout") + ts.ReadFile("stderr"); !strings.Contains(words(said), words(args[0])) {
		ts.Fatalf("the page shows %q, but the command printed\n%s", args[0], said)
	}
}
