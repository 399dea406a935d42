// Writes the jobs that compute the shards of an experiment: an array job for Slurm or
// an indexed Job for Kubernetes.

package experiment

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"

	"github.com/miplc/miplc/internal/diag"
)

// Names of the files in the folder of an experiment.
const (
	SlurmFile      = "job.sbatch"
	KubernetesFile = "job.yaml"
	LogsFolder     = "logs" // of Slurm tasks
)

var (
	//go:embed slurm.sh.tmpl
	slurm string
	//go:embed kubernetes.yaml.tmpl
	kubernetes string
)

// DefaultMaxTasks is the maximum number of tasks of an array with Slurm's default MaxArraySize, 1001.
const DefaultMaxTasks = 1000

// JobOptions are the resources of a job. Empty texts and 0 select the defaults of the cluster.
type JobOptions struct {
	Workers   int    // tasks at the same time
	MaxTasks  int    // of an array; Slurm only. 0: DefaultMaxTasks
	CPUs      int    // of a task
	GPUs      int    // of a task
	Memory    string // of a task, in the notation of the scheduler
	Partition string // Slurm only
	Account   string // Slurm only
	Time      string // time limit of a task; Slurm only
	Image     string // container image; Kubernetes only
	Claim     string // volume claim that contains the folder of the experiment: NAME or NAME/PATH; Kubernetes only
	Binary    string // path of miplc on the nodes; Slurm only
}

// Job has the values of a template.
type Job struct {
	JobOptions
	Name   string // of the experiment
	Dir    string // absolute
	Plan   string // its ID
	Shards int
}

// Tasks returns the number of tasks of the array. Task i computes the shards with the indices i, i + Tasks, i + 2 Tasks
// and so on, one after the other.
func (j Job) Tasks() int { return min(j.Shards, cmp.Or(j.MaxTasks, DefaultMaxTasks)) }

// Last returns the index of the last task.
func (j Job) Last() int { return j.Tasks() - 1 }

// AtATime returns the number of tasks that run at the same time.
func (j Job) AtATime() int { return min(j.Workers, j.Shards) }

// Title returns the name of the experiment on one line.
func (j Job) Title() string { return diag.CleanLine(j.Name) }

// Logs returns the path pattern of the logs of Slurm tasks, in which %% is the character %.
func (j Job) Logs() string {
	return filepath.Join(strings.ReplaceAll(j.Dir, "%", "%%"), LogsFolder, "%A_%a.out")
}

// JobName returns a DNS label that is different for every plan.
func (j Job) JobName() string {
	name := strings.Trim(notOfLabels.ReplaceAllString(strings.ToLower(j.Name), "-"), "-")
	return "miplc-" + strings.TrimRight(name[:min(len(name), 30)], "-") + "-" + j.Plan
}

// SubPath returns the path of the folder in the volume.
func (j Job) SubPath() string {
	_, path, _ := strings.Cut(j.JobOptions.Claim, "/")
	return path
}

// Claim returns the name of the volume's claim.
func (j Job) Claim() string {
	name, _, _ := strings.Cut(j.JobOptions.Claim, "/")
	return name
}

var (
	notOfLabels = regexp.MustCompile(`[^a-z0-9]+`)
	word        = regexp.MustCompile(`^[\w.:/@%+,=-]*$`)
)

// Check returns an error if an option has characters that would need quoting in a job file.
func (o *JobOptions) Check() error {
	for flag, text := range map[string]string{"memory": o.Memory, "partition": o.Partition, "account": o.Account,
		"time": o.Time, "image": o.Image, "claim": o.Claim} {
		if !word.MatchString(text) {
			return fmt.Errorf("--%s %q: write only letters, digits and . : / @ %% + , = - _", flag, text)
		}
	}
	return nil
}

// SlurmJob returns the file for sbatch.
func SlurmJob(j Job) ([]byte, error) { return FillJob("slurm", slurm, j) }

// KubernetesJob returns the manifest for kubectl.
func KubernetesJob(j Job) ([]byte, error) { return FillJob("kubernetes", kubernetes, j) }

// FillJob executes a text/template with a Job. The functions sh, yaml and directive quote a text for a
// shell, for YAML and for a line that starts with #SBATCH. Errors contain name.
func FillJob(name, text string, j Job) ([]byte, error) {
	t, err := template.New(name).Option("missingkey=error").Funcs(template.FuncMap{"sh": diag.ShellWord, "yaml": quoteYAML,
		"directive": quoteDirective}).Parse(text)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := t.Execute(&out, j); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// quoteYAML returns the text as a JSON string, which is also valid YAML.
func quoteYAML(text string) (string, error) {
	quoted, err := json.Marshal(text)
	return string(quoted), err
}

func quoteDirective(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}
