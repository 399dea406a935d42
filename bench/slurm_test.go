// Experiments on a Slurm cluster of four nodes on one machine. Its tests interrupt and kill tasks as real clusters do.

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/miplc/miplc/experiment"
)

// asked is the environment variable that enables these tests, which take minutes.
const asked = "MIPLC_TEST_SLURM"

// cluster is a running Slurm cluster.
type cluster struct {
	*testing.T
	dir, miplc string
}

func start(t *testing.T) *cluster {
	if os.Getenv(asked) == "" {
		t.Skipf("set %s=1 to run it: it takes minutes and needs the Slurm cluster of cluster.sh", asked)
	}
	if out, err := exec.Command("bash", "slurm/cluster.sh", "check").CombinedOutput(); err != nil {
		t.Skipf("%s", out)
	}
	c := &cluster{t, filepath.Join(t.TempDir(), "slurm"), filepath.Join(t.TempDir(), "miplc")}
	c.run("go", "build", "-o", c.miplc, "../cmd/miplc")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	listener.Close()
	t.Setenv("SLURM_CONF", filepath.Join(c.dir, "slurm.conf"))
	t.Cleanup(func() {
		if out, err := exec.Command("bash", "slurm/cluster.sh", "down", c.dir).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	c.run("bash", "slurm/cluster.sh", "up", c.dir, "4", strconv.Itoa(min(port, 65000)))
	return c
}

// run runs a command that must succeed and returns its output.
func (c *cluster) run(name string, args ...string) string {
	c.Helper()
	var said bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		c.Fatalf("%s %q: %v\n%s%s", name, args, err, out, said.Bytes())
	}
	return strings.TrimSpace(string(out))
}

// submit plans an experiment whose tasks each use a whole node, and submits the job with a time limit in minutes. It
// returns the number of the job and of its shards, or no job if all cells are finished.
func (c *cluster) submit(dir, file, limit string, flags ...string) (job string, shards int) {
	c.Helper()
	args := append([]string{"experiment", "plan", file, "-o", dir, "--cpus", "2", "--workers", "4", "--json"}, flags...)
	var planned struct {
		ID     string
		Shards int
	}
	if err := json.Unmarshal([]byte(c.run(c.miplc, args...)), &planned); err != nil {
		c.Fatal(err)
	}
	if planned.Shards > 0 {
		c.Setenv("MIPLC_SHARDS", strconv.Itoa(planned.Shards))
		c.Setenv("MIPLC_PLAN", planned.ID)
		c.Setenv("MIPLC", c.miplc)
		job = c.run("sbatch", "--parsable", "--cpus-per-task=2", "--time="+limit,
			"--output="+filepath.Join(c.dir, "log", "%A_%a.out"),
			fmt.Sprintf("--array=0-%d%%4", planned.Shards-1), "../examples/slurm/experiment.sbatch", dir)
	}
	return job, planned.Shards
}

// until waits for a condition of the cluster. The limit is long because the machine may be busy.
func (c *cluster) until(what string, reached func() bool) {
	c.Helper()
	for range 3000 {
		if reached() {
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
	logs, _ := exec.Command("bash", "-c", "tail -n 8 "+c.dir+"/log/*; scontrol show job").CombinedOutput()
	c.Fatalf("not reached within ten minutes: %s\n%s", what, logs)
}

// drained waits until no task is queued or runs.
func (c *cluster) drained() {
	c.Helper()
	c.until("all tasks are over", func() bool { return c.run("squeue", "-h") == "" })
}

// shard returns the process that computes a task of a job, or 0 if there is none.
func shard(job string, task int) int {
	paths, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range paths {
		env, err := os.ReadFile(path)
		args, e2 := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		if err != nil || e2 != nil || !bytes.Contains(args, []byte("\x00--shard\x00")) {
			continue // the process has ended
		}
		pairs := "\x00" + string(env)
		if strings.Contains(pairs, "\x00SLURM_ARRAY_JOB_ID="+job+"\x00") &&
			strings.Contains(pairs, fmt.Sprintf("\x00SLURM_ARRAY_TASK_ID=%d\x00", task)) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			return pid
		}
	}
	return 0
}

// same compares two folders: the bytes of the reports, and the results, except for times.
func (c *cluster) same(one, many string) {
	c.Helper()
	var cellResults []map[string]experiment.Result
	for _, dir := range []string{one, many} {
		c.run(c.miplc, "report", dir)
		read, err := experiment.Read(dir)
		if err != nil {
			c.Fatal(err)
		}
		if len(read.Differ) > 0 {
			c.Errorf("computed twice with different results: %v", read.Differ)
		}
		for key, r := range read.ByKey {
			r.Seconds = 0
			for i := range r.Trials {
				r.Trials[i].Seconds = 0
			}
			read.ByKey[key] = r
		}
		cellResults = append(cellResults, read.ByKey)
	}
	if len(cellResults[0]) == 0 || !reflect.DeepEqual(cellResults[0], cellResults[1]) {
		c.Errorf("%d results of one process, %d of shards, or they differ", len(cellResults[0]), len(cellResults[1]))
	}
	if out, err := exec.Command("diff", "-r", "--exclude=trials.csv", filepath.Join(one, "report"),
		filepath.Join(many, "report")).CombinedOutput(); err != nil {
		c.Errorf("the reports differ: %v\n%s", err, out)
	}
}

// done returns the number of cells of a folder with a result.
func (c *cluster) done(dir string) int {
	read, err := experiment.Read(dir)
	if err != nil {
		c.Fatal(err)
	}
	return len(read.ByKey)
}

// experimentOf writes an experiment whose cells take some milliseconds per epoch.
func (c *cluster) experimentOf(epochs, splits int) string {
	path := filepath.Join(c.TempDir(), "own.yaml")
	err := os.WriteFile(path, fmt.Appendf(nil, `name: own
data:
  - {name: P, synth: {set: prototypes, bags: 60, features: 8, min_size: 2, max_size: 4}}
learners:
  - {name: demipl, spec: demipl, set: {train.epochs: %d, train.engine: gorgonia}}
splits: {count: %d}
`, epochs, splits), 0o644)
	if err != nil {
		c.Fatal(err)
	}
	return path
}

// Eight shards on four nodes give the same results as one process.
func TestSlurmSmoke(t *testing.T) {
	c := start(t)
	one, many := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "many")
	if _, shards := c.submit(many, "smoke", "60", "--shards", "8"); shards != 8 {
		t.Fatalf("%d shards", shards)
	}
	c.run(c.miplc, "experiment", "smoke", "-o", one, "--jobs", "1")
	c.drained()
	c.same(one, many)
	jobs, err := os.ReadFile(filepath.Join(c.dir, "log", "jobs.txt"))
	if err != nil {
		t.Fatal(err)
	}
	nodes := map[string]int{}
	for _, found := range regexp.MustCompile(`JobState=COMPLETED .*NodeList=(\w+)`).FindAllSubmatch(jobs, -1) {
		nodes[string(found[1])]++
	}
	if len(nodes) != 4 {
		t.Errorf("completed tasks by node: %v", nodes)
	}
	if _, shards := c.submit(many, "smoke", "60"); shards != 0 {
		t.Errorf("all cells are finished, but %d shards are left", shards)
	}
}

// Tasks are cancelled, killed and requeued, and the daemon of a node is killed while it runs one.
// After the job of a second plan the report equals that of one process.
func TestSlurmLosses(t *testing.T) {
	c := start(t)
	file, one, many := c.experimentOf(3000, 8), filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "many")
	job, shards := c.submit(many, file, "60", "--shards", "8")
	if shards != 8 {
		t.Fatalf("%d shards", shards)
	}
	c.until("four tasks compute", func() bool {
		for task := range 4 {
			if shard(job, task) == 0 {
				return false
			}
		}
		return true
	})
	c.run("scancel", job+"_0")
	c.run("kill", "-9", strconv.Itoa(shard(job, 1)))
	c.run("scontrol", "requeue", job+"_2")
	node := c.run("squeue", "-h", "-o", "%N", "-j", job+"_3")
	daemon, err := os.ReadFile(filepath.Join(c.dir, "run", node+".pid"))
	if err != nil {
		t.Fatal(err)
	}
	c.run("kill", "-9", strings.TrimSpace(string(daemon)))
	c.run("bash", "slurm/cluster.sh", "node", c.dir, node)
	c.drained()
	left := 8 - c.done(many)
	t.Logf("%d of 8 cells are left", left)
	if left != 2 {
		t.Errorf("%d cells are left, want those of the cancelled and of the killed task", left)
	}
	if _, shards := c.submit(many, file, "60", "--shards", "8"); shards != left {
		t.Errorf("%d shards for %d cells", shards, left)
	}
	c.run(c.miplc, "experiment", file, "-o", one)
	c.drained()
	c.same(one, many)
}

// A cell that takes longer than the time limit continues in the task that its task requeues.
func TestSlurmTimeLimit(t *testing.T) {
	c := start(t)
	file, one, many := c.experimentOf(15000, 1), filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "many")
	job, _ := c.submit(many, file, "1")
	restarts := 0
	c.until("the task is over", func() bool {
		if c.run("squeue", "-h") == "" {
			return true
		}
		if found := regexp.MustCompile(`Restarts=(\d+)`).FindStringSubmatch(c.run("scontrol", "show", "job",
			job)); found != nil {
			restarts, _ = strconv.Atoi(found[1])
		}
		return false
	})
	t.Logf("%d restarts", restarts)
	if restarts == 0 {
		t.Error("the task was not requeued")
	}
	c.run(c.miplc, "experiment", file, "-o", one)
	c.same(one, many)
}
