// Job files for Slurm, Kubernetes and templates of users start every shard, and resume it after a failure.

package experiment

import (
	"path/filepath"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/miplc/miplc/internal/testkit/testsupport"
)

func job(o JobOptions) Job {
	return Job{JobOptions: o, Name: "Own Ta_ble (2nd)", Dir: "/home/o'hara/my \"table\", 5%", Plan: "0123456789ab",
		Shards: 24}
}

func TestFiles(t *testing.T) {
	cpu := JobOptions{Workers: 8, CPUs: 4, Memory: "4Gi", Image: "registry.example/miplc:1@sha256:ab",
		Claim: "experiments/own table", Binary: "/opt/my tools/miplc"}
	few := cpu
	few.MaxTasks = 10
	gpu := JobOptions{Workers: 99, CPUs: 2, GPUs: 1, Partition: "gpu", Account: "lab", Time: "01:00:00", Image: "miplc",
		Claim: "experiments", Binary: "miplc"}
	for name, o := range map[string]JobOptions{"cpu": cpu, "gpu": gpu, "few": few} {
		for _, kind := range []struct {
			ending string
			make   func(Job) ([]byte, error)
		}{{".sbatch", SlurmJob}, {".yaml", KubernetesJob}} {
			text, err := kind.make(job(o))
			if err != nil {
				t.Fatal(err)
			}
			testsupport.CheckGolden(t, filepath.Join("testdata", name+kind.ending), text)
		}
	}
	for _, bad := range []JobOptions{{Partition: "a b"}, {Account: "x\n#SBATCH"}, {Time: `"`}, {Image: "a'b"},
		{Claim: "{}"}, {Memory: "$(x)"}} {
		if bad.Check() == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
	if err := gpu.Check(); err != nil {
		t.Error(err)
	}
}

// The rules of the manifest first keep evicted pods running, and only then consider exit codes.
func TestRules(t *testing.T) {
	text, err := KubernetesJob(job(JobOptions{Workers: 8, CPUs: 1}))
	if err != nil {
		t.Fatal(err)
	}
	var j struct {
		Metadata struct{ Name string }
		Spec     struct {
			Completions, Parallelism, BackoffLimitPerIndex int
			PodFailurePolicy                               struct {
				Rules []struct {
					Action          string
					OnPodConditions []struct{ Type string } `yaml:"onPodConditions"`
					OnExitCodes     struct{ Values []int }  `yaml:"onExitCodes"`
				}
			} `yaml:"podFailurePolicy"`
		}
	}
	if err := yaml.Unmarshal(text, &j); err != nil {
		t.Fatal(err)
	}
	var rules []string
	for _, r := range j.Spec.PodFailurePolicy.Rules {
		if len(r.OnPodConditions) == 1 {
			rules = append(rules, r.Action+" "+r.OnPodConditions[0].Type)
		} else {
			rules = append(rules, r.Action+" "+string(rune('0'+r.OnExitCodes.Values[0]%10)))
		}
	}
	if got := strings.Join(rules, ", "); got != "Ignore DisruptionTarget, FailJob 2, FailIndex 1, Count 5" {
		t.Errorf("rules %s", got)
	}
	if j.Metadata.Name != "miplc-own-ta-ble-2nd-0123456789ab" || j.Spec.Completions != 24 || j.Spec.Parallelism != 8 {
		t.Errorf("%+v", j)
	}
}

// A template of the user can use the values and functions of the shipped ones.
func TestOwnTemplate(t *testing.T) {
	got, err := FillJob("own", "{{.Name}} {{.Last}} {{sh .Dir}} {{yaml .Plan}}", job(JobOptions{}))
	if want := `Own Ta_ble (2nd) 23 '/home/o'\''hara/my "table", 5%' "0123456789ab"`; err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
	for _, wrong := range []string{"{{.Nme}}", "{{", "{{nope}}"} {
		if _, err := FillJob("own", wrong, job(JobOptions{})); err == nil || !strings.Contains(err.Error(), "own:1") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}
