// Files of up to 1 MiB, however hostile, are checked in bounded time and memory.

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Limits for checking a file of up to 1 MiB. The time is processor time. Checking takes about a second,
// so the limit detects quadratic steps and tolerates a busy machine.
const (
	fileSize        = 1 << 20
	validateMemory  = 200 << 20
	validateSeconds = 5
)

// upTo concatenates part(0), part(1), ... up to size bytes.
func upTo(size int, part func(i int) string) string {
	var b strings.Builder
	for i := 0; ; i++ {
		p := part(i)
		if b.Len()+len(p) > size {
			return b.String()
		}
		b.WriteString(p)
	}
}

func filled(part func(i int) string) string { return upTo(fileSize-4000, part) }

func same(text string) func(int) string { return func(int) string { return text } }

func numbered(format string) func(int) string {
	return func(i int) string { return strings.ReplaceAll(format, "%", fmt.Sprint(i)) }
}

// equationSpec returns a spec of equations with further parameters and lines, and z defined by
// last.
func equationSpec(params, lines, last string) string {
	return `name: large
extends: quickstart
model:
  blocks: []
  sizes: {m: 16}
  params:
    V: {shape: [d, m]}
    u: {shape: [m, 1]}
    C: {shape: [d, k]}
` + params + `  let:
    s: matmul(tanh(matmul(X, V)), u)
    a: bag_softmax(s)
` + lines + `    z: bag_sum(a * ` + last + `)
    logp: log_softmax(matmul(z, C))
    p: exp(logp)
loss:
  - disambiguation
`
}

func blockSpec(blocks string) string {
	return "name: large\nextends: quickstart\nmodel: {blocks: [" + blocks + " attention, {pool: attention}, classifier]}\n"
}

// chain returns n equations q1 to qn, each of which uses the previous one.
func chain(n int) string {
	b := strings.Builder{}
	b.WriteString("    q0: X\n")
	for i := range n {
		fmt.Fprintf(&b, "    q%d: exp(q%d)\n", i+1, i)
	}
	return b.String()
}

// laughs returns the billion laughs attack of XML in YAML.
func laughs() string {
	text := "a0: &a0 [ha, ha, ha, ha, ha, ha, ha, ha, ha]\n"
	for i := range 20 {
		text += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 9),
			", "))
	}
	return text
}

// largeFiles returns files of up to 1 MiB that could make a reader use excessive memory or time.
func largeFiles() map[string]string {
	const head = "name: large\nextends: quickstart\n"
	ones := func(n int) string { return strings.Repeat("1+", n-1) + "1" }
	return map[string]string{
		// Many errors.
		"unknown names": equationSpec("", filled(numbered("    q%: nope%\n")), "X"),
		"unknown names in one line": "name: large\nextends: quickstart\nmodel: {let: {" + upTo(350_000,
			numbered("q%: nope, ")) + "}}",
		"names of one misspelling": equationSpec("", filled(numbered("    quality%: qualty%\n")), "X"),
		"names used too early": equationSpec("", filled(func(i int) string {
			return fmt.Sprintf("    q%d: q%d\n", i, i+1)
		}), "X"),
		"unused parameters":        equationSpec(filled(numbered("    P%: [d]\n")), "", "X"),
		"unknown keys":             head + filled(numbered("k%: 1\n")),
		"unknown keys in one line": head + "model: {" + upTo(150_000, numbered("k%: 1, ")) + "}",
		"unknown long keys": head + filled(func(i int) string {
			return fmt.Sprintf("k%d%s: 1\n", i, strings.Repeat("x", 900))
		}),
		"one key again and again": head + upTo(120_000, same("k: 1\n")),
		"one key in one line":     "{" + upTo(100_000, same("k: 1,")) + "}",
		"keys with comments":      head + filled(numbered("# c\nk%: 1 # d\n")),
		"quoted keys":             head + filled(numbered("'k%': 'v'\n")),
		"unknown functions":       equationSpec("", filled(numbered("    q%: f%(X)\n")), "X"),
		"equations cut short":     equationSpec("", filled(numbered("    q%: (\n")), "X"),
		"names that are numbers":  equationSpec("", filled(numbered("    %: X\n")), "X"),
		"wrong shapes":            equationSpec("", upTo(600_000, numbered("    q%: matmul(X, u)\n")), "X"),
		"unknown extents": "name: large\nextends: quickstart\nmodel: {params: {" + upTo(250_000,
			numbered("P%: [e%],")) + "}}",
		"unknown blocks":            blockSpec(upTo(300_000, numbered("b%,"))),
		"blocks without arguments":  blockSpec(upTo(200_000, same("dense: {u: 1},"))),
		"attention again and again": blockSpec(upTo(300_000, same("attention,"))),
		"loss terms":                head + "loss:\n" + filled(same("  - disambiguation\n")),
		"anchors":                   filled(numbered("a%: &a% 1\n")),
		"aliases":                   "a: &a 1\nb: [" + upTo(150_000, same("*a,")) + "]",
		"tags":                      filled(numbered("a%: !!x 1\n")),
		"merge keys":                "a: &a {b: 1}\nc:\n" + filled(same("  <<: *a\n")),
		"an equation of errors": equationSpec("", "    q: "+strings.Repeat("n$", 400)+strings.Repeat("nope+", 3000)+"1\n",
			"X"),
		"a term of unknown names": equationSpec("", filled(func(i int) string {
			return fmt.Sprintf("    q%d: %s1\n", i, strings.Repeat("n+", 450))
		}), "X"),

		// Many values.
		"a list":            "[" + filled(same("a,")) + "]",
		"a list of lines":   filled(same("- a\n")),
		"a list of nothing": filled(same("-\n")),
		"a list of lists":   "[" + filled(same("[],")) + "]",
		"keys of nothing":   "{" + filled(same("?,")) + "}",
		"a shape":           head + "data: {shape: [" + upTo(95_000, same("1,")) + "1]}",
		"a shape of words":  "name: large\nextends: quickstart\nmodel: {params: {P: [" + upTo(95_000, same("a,")) + "]}}",
		"a used shape":      equationSpec("    P: ["+upTo(95_000, same("1,"))+"1]\n", "", "sum(P)"),
		"numbers": "name: large\nextends: quickstart\nmodel: {numbers: {" + upTo(250_000, numbered("s%: 1,")) +
			"}}",
		"sizes": "name: large\nextends: quickstart\nmodel: {sizes: {" + upTo(250_000, numbered("s%: 1,")) +
			"}}",
		"many documents":       filled(same("---\n")),
		"directives":           filled(same("%YAML 1.1\n")),
		"a chain of equations": equationSpec("", chain(19_000), "q19000"),

		// Deep nesting.
		"brackets":        strings.Repeat("[", 45_000),
		"closed brackets": strings.Repeat("[", 24_000) + strings.Repeat("]", 24_000),
		"many brackets":   strings.Repeat("[", fileSize),
		"braces":          strings.Repeat("{a: ", 20_000),
		"dashes":          strings.Repeat("- ", 45_000),
		"question marks":  strings.Repeat("? ", 45_000),
		"indentation":     upTo(fileSize-1500, func(i int) string { return strings.Repeat(" ", i) + "a:\n" }),
		"parentheses": equationSpec("", filled(func(i int) string {
			return fmt.Sprintf("    q%d: %s1%s\n", i, strings.Repeat("(", 8000), strings.Repeat(")", 8000))
		}), "X"),
		"allowed parentheses": equationSpec("", filled(func(i int) string {
			return fmt.Sprintf("    q%d: %sX%s\n", i, strings.Repeat("(", 480), strings.Repeat(")", 480))
		}), "X"),
		"open parentheses":  equationSpec("", "    q: "+strings.Repeat("(", 900_000)+"\n", "X"),
		"minus after minus": equationSpec("", "    q: "+strings.Repeat("-", 15_000)+"X\n", "X"),
		"a billion laughs":  laughs(),

		// Long tokens.
		"a long key":      head + strings.Repeat("k", 1_000_000) + ": 1\n",
		"a long value":    head + "train: {engine: " + strings.Repeat("k", 1_000_000) + "}\n",
		"a long number":   head + "train: {epochs: " + strings.Repeat("9", 1_000_000) + "}\n",
		"a long fraction": head + "train: {lr: 0." + strings.Repeat("9", 1_000_000) + "}\n",
		"a long exponent": head + "train: {lr: 1e" + strings.Repeat("9", 1_000_000) + "}\n",
		"a long comment":  "#" + strings.Repeat("#", 1_000_000) + "\n" + head,
		"a long equation": equationSpec("", "    q: "+ones(480_000)+"\n", "X"),
		"equations of many terms": equationSpec("", filled(func(i int) string {
			return fmt.Sprintf("    q%d: %s\n", i, ones(490))
		}), "X"),
		"equations of many names": equationSpec("", filled(func(i int) string {
			return fmt.Sprintf("    q%d: X%s\n", i, strings.Repeat("+X", 480))
		}), "X"),
		"equations over many lines": equationSpec("", filled(func(i int) string {
			return fmt.Sprintf("    q%d: >\n%s      1\n", i, strings.Repeat("      1 +\n", 400))
		}), "X"),
		"equations in one line": "name: large\nextends: quickstart\nmodel: {let: {" + upTo(900_000,
			numbered("q%: 1+2+3+4+5+6+7+8+9+10+11+12+13+14+15+16+17+18,")) + "}}",
		"blank lines":            strings.Repeat("\n", 1_000_000) + head,
		"blanks":                 head + strings.Repeat(" ", 1_000_000),
		"tabs":                   strings.Repeat("\t", 1_000_000),
		"comments":               strings.Repeat("#\n", 500_000) + head,
		"escapes":                head + `"` + strings.Repeat(`\x41`, 250_000) + `": 1`,
		"separators":             strings.Repeat("\u2028", 340_000),
		"byte order marks":       strings.Repeat("\ufeff", 340_000),
		"emoji":                  head + "k: " + strings.Repeat("\U0001F600", 250_000),
		"no text":                strings.Repeat("\xff\x00", 500_000),
		"blocks":                 blockSpec(upTo(250_000, same("relu,"))),
		"blocks with parameters": blockSpec(upTo(220_000, same("dense: 3,"))),
		"wide blocks":            blockSpec(upTo(10_000, same("dense: 1000000,"))),
		"a learner": "name: large\nextends: pl-aggd-mean\nlearner: {kind: pl-aggd, " + upTo(300_000,
			numbered("k%: 1,")) + "}",
	}
}

// TestLargeFiles checks that files of up to 1 MiB are handled within the limits and that the output
// fits on one or two screens.
func TestLargeFiles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range largeFiles() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if len(text) > fileSize {
				t.Fatalf("%d bytes", len(text))
			}
			file := filepath.Join(dir, strings.ReplaceAll(name, " ", "-")+".yaml")
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			checkCost(t, file)
		})
	}
}

// TestLargeChain checks the same for files that extend each other.
func TestLargeChain(t *testing.T) {
	dir := t.TempDir()
	for i := range 20 {
		text := fmt.Sprintf("extends: f%d.yaml\n", i+1) + upTo(390_000, numbered(fmt.Sprintf("k%%%d: 1\n", i)))
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%d.yaml", i)), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	checkCost(t, filepath.Join(dir, "f0.yaml"))
	checkCost(t, filepath.Join(dir, "f8.yaml"), "--json")
}

func checkCost(t *testing.T, flags ...string) {
	t.Helper()
	cmd := exec.Command("miplc", append([]string{"validate"}, flags...)...)
	out, err := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != 0 && code != 2 {
		t.Fatalf("exit code %d (%v)\n%.2000s", code, err, out)
	}
	if len(out) > 40_000 {
		t.Errorf("the output has %d bytes, starting with\n%.500s", len(out), out)
	}
	memory := memoryUsed(cmd.ProcessState)
	spent := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	t.Logf("%d MiB, %.2f s: %.100s", memory>>20, spent.Seconds(), out)
	if memory > validateMemory {
		t.Errorf("used %d MiB of memory", memory>>20)
	}
	if spent > validateSeconds*time.Second {
		t.Errorf("used %v of processor time", spent)
	}
}
