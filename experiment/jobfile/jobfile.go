// Package jobfile writes the jobs that compute the shards of an experiment: an
// array of Slurm, an indexed Job of Kubernetes.
package jobfile

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"

	"github.com/miplc/miplc/internal/sanitize"
)

// Names of the files in the folder of an experiment.
const (
	SlurmFile      = "job.sbatch"
	KubernetesFile = "job.yaml"
	LogsFolder     = "logs" // of Slurm
)

var (
	//go:embed slurm.sh.tmpl
	slurm string
	//go:embed kubernetes.yaml.tmpl
	kubernetes string
)

// Options are what the cluster is asked for. Empty texts and 0 leave it to the site.
type Options struct {
	Workers   int    // tasks at the same time
	CPUs      int    // of a task
	GPUs      int    // of a task
	Memory    string // of a task, in the words of the scheduler
	Partition string // of Slurm, as Account and Time
	Account   string
	Time      string
	Image     string // of Kubernetes, as Claim
	Claim     string // volume with the folder of the experiment: NAME, or NAME/PATH where it lies
	Binary    string // miplc on the nodes of Slurm
}

// Job is what a template is filled with.
type Job struct {
	Options
	Name   string // of the experiment
	Dir    string // absolute
	Plan   string // its ID
	Shards int
}

// Last returns the index of the last task.
func (j Job) Last() int { return j.Shards - 1 }

// AtATime is how many tasks run at the same time.
func (j Job) AtATime() int { return min(j.Workers, j.Shards) }

// Title returns the name of the experiment, on one line whatever it holds.
func (j Job) Title() string { return sanitize.Line(j.Name) }

// Logs is where Slurm puts what the tasks say.
func (j Job) Logs() string { return filepath.Join(j.Dir, LogsFolder, "%A_%a.out") }

// JobName returns a label of DNS, another one for every plan.
func (j Job) JobName() string {
	name := strings.Trim(notOfLabels.ReplaceAllString(strings.ToLower(j.Name), "-"), "-")
	return "miplc-" + strings.TrimRight(name[:min(len(name), 30)], "-") + "-" + j.Plan
}

// SubPath is where the folder lies in the volume.
func (j Job) SubPath() string {
	_, path, _ := strings.Cut(j.Options.Claim, "/")
	return path
}

// Claim returns the name of the volume's claim.
func (j Job) Claim() string {
	name, _, _ := strings.Cut(j.Options.Claim, "/")
	return name
}

var (
	notOfLabels = regexp.MustCompile(`[^a-z0-9]+`)
	word        = regexp.MustCompile(`^[\w.:/@%+,=-]*$`)
)

// Check reports options that would not stay one word in a job file.
func (o *Options) Check() error {
	for flag, text := range map[string]string{"memory": o.Memory, "partition": o.Partition, "account": o.Account, "time": o.Time, "image": o.Image, "claim": o.Claim} {
		if !word.MatchString(text) {
			return fmt.Errorf("--%s %q: write letters, digits and . : / @ %% + , = - _ alone", flag, text)
		}
	}
	return nil
}

// Slurm returns the file for sbatch.
func Slurm(j Job) ([]byte, error) { return Fill("slurm", slurm, j) }

// Kubernetes returns the manifest for kubectl.
func Kubernetes(j Job) ([]byte, error) { return Fill("kubernetes", kubernetes, j) }

// Fill makes a job of a template of text/template: its values are those of Job, and
// its functions sh and yaml quote a text for a shell and for YAML, directive for a
// line that starts with #SBATCH. name names the template in errors.
func Fill(name, text string, j Job) ([]byte, error) {
	t, err := template.New(name).Option("missingkey=error").Funcs(template.FuncMap{"sh": quoteShell, "yaml": quoteYAML, "directive": quoteDirective}).Parse(text)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := t.Execute(&out, j); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func quoteShell(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// quoteYAML makes use of every JSON text being YAML.
func quoteYAML(text string) (string, error) {
	quoted, err := json.Marshal(text)
	return string(quoted), err
}

func quoteDirective(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}
