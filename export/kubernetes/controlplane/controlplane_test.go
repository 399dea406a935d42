// Package controlplane runs the Jobs that miplc writes in parts of Kubernetes itself: the defaults and
// the validation of its API server, and its Job controller. Storage, scheduler and kubelets have no
// influence on a Job. They are replaced by client-go's store in memory and by local processes as
// pods.
package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/batch"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	jobcontroller "k8s.io/kubernetes/pkg/controller/job"
	jobregistry "k8s.io/kubernetes/pkg/registry/batch/job"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/miplc/miplc/export/kubernetes"
)

const namespace = "default"

// admit applies defaults and validation to a manifest like the API server.
func admit(text []byte) (*batchv1.Job, error) {
	var job batchv1.Job
	if err := yaml.UnmarshalStrict(text, &job); err != nil {
		return nil, err
	}
	job.Namespace = namespace
	legacyscheme.Scheme.Default(&job)
	var internal batch.Job
	if err := legacyscheme.Scheme.Convert(&job, &internal, nil); err != nil {
		return nil, err
	}
	rest.FillObjectMetaSystemFields(&internal)
	if err := rest.BeforeCreate(jobregistry.Strategy, request.WithNamespace(context.Background(), namespace),
		&internal); err != nil {
		return nil, err
	}
	var admitted batchv1.Job
	err := legacyscheme.Scheme.Convert(&internal, &admitted, nil)
	return &admitted, err
}

func TestAdmitted(t *testing.T) {
	m := kubernetes.Build(t)
	for _, flags := range [][]string{{"--cpus", "4", "--memory", "4Gi"}, {"--gpus", "1", "--engine", "gorgonia", "--claim",
		"data/smoke"}} {
		text, _ := m.Plan(t, t.TempDir(), "smoke", flags...)
		if _, err := admit(text); err != nil {
			t.Errorf("%v: %v\n%s", flags, err, text)
		}
		for what, wrong := range map[string][2]string{
			"a policy that needs pods that never restart": {"restartPolicy: Never", "restartPolicy: OnFailure"},
			"a rule on a container that is not there": {"containerName: miplc, operator: In, values: [2]",
				"containerName: other, operator: In, values: [2]"},
			"a mount without a volume": {"{name: tmp, emptyDir: {}}", "{name: temp, emptyDir: {}}"},
		} {
			if _, err := admit(bytes.Replace(text, []byte(wrong[0]), []byte(wrong[1]), 1)); err == nil {
				t.Errorf("%s was accepted", what)
			}
		}
	}
}

// cluster runs the Job controller on a store in memory, with local processes as pods.
type cluster struct {
	t      *testing.T
	ctx    context.Context
	client *fake.Clientset
	miplc  kubernetes.Miplc
	folder string // used as the volume

	mu     sync.Mutex
	number int            // number of the last name or version
	tries  map[string]int // number of pods started, by index
	harm   func(index string, try int, pod *corev1.Pod, p *os.Process)
	ran    sync.WaitGroup
}

func start(t *testing.T, m kubernetes.Miplc, folder string) *cluster {
	ctx, stop := context.WithCancel(context.Background())
	c := &cluster{t: t, ctx: ctx, client: fake.NewSimpleClientset(), miplc: m, folder: folder, tries: map[string]int{}}
	c.client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		pod := action.(clienttesting.CreateAction).GetObject().(*corev1.Pod)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.number++
		pod.Name = fmt.Sprintf("%s%d", pod.GenerateName, c.number)
		pod.UID = types.UID(pod.Name)
		pod.CreationTimestamp = metav1.Now()
		pod.Status.Phase = corev1.PodPending
		return false, nil, nil
	})
	c.client.PrependReactor("patch", "pods", c.patch)
	pods, err := c.client.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	factory := informers.NewSharedInformerFactory(c.client, 0)
	controller, err := jobcontroller.NewController(ctx, factory.Core().V1().Pods(), factory.Batch().V1().Jobs(), c.client)
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	go controller.Run(ctx, 1)
	go func() {
		for event := range pods.ResultChan() {
			if event.Type == watch.Added {
				c.ran.Add(1)
				go c.run(event.Object.(*corev1.Pod))
			}
		}
	}()
	t.Cleanup(func() {
		stop()
		c.ran.Wait()
	})
	return c
}

// patch changes a pod and its version. The controller ignores objects with the same version.
func (c *cluster) patch(action clienttesting.Action) (bool, runtime.Object, error) {
	change := action.(clienttesting.PatchActionImpl)
	var patch map[string]any
	if err := json.Unmarshal(change.Patch, &patch); err != nil {
		return true, nil, err
	}
	metadata, _ := patch["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	c.mu.Lock()
	c.number++
	metadata["resourceVersion"] = strconv.Itoa(c.number)
	c.mu.Unlock()
	patch["metadata"] = metadata
	var err error
	if change.Patch, err = json.Marshal(patch); err != nil {
		return true, nil, err
	}
	return clienttesting.ObjectReaction(c.client.Tracker())(change)
}

// run does the work of the kubelet for one pod.
func (c *cluster) run(pod *corev1.Pod) {
	defer c.ran.Done()
	index := pod.Annotations[batchv1.JobCompletionIndexAnnotation]
	container := pod.Spec.Containers[0]
	var args []string
	for _, arg := range container.Command[1:] {
		for _, mount := range container.VolumeMounts {
			if mount.Name == "experiment" && arg == mount.MountPath {
				arg = c.folder
			}
		}
		args = append(args, arg)
	}
	cmd := exec.CommandContext(c.ctx, string(c.miplc), args...)
	cmd.Env = os.Environ()
	for _, e := range container.Env {
		value := e.Value
		if e.ValueFrom != nil { // set by the controller: the index
			value = index
		}
		cmd.Env = append(cmd.Env, e.Name+"="+value)
	}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		c.t.Error(err)
		return
	}
	c.tell(pod, corev1.PodStatus{Phase: corev1.PodRunning})
	c.mu.Lock()
	c.tries[index]++
	try, harm := c.tries[index], c.harm
	c.mu.Unlock()
	if harm != nil {
		harm(index, try, pod, cmd.Process)
	}
	_ = cmd.Wait() // its exit code is checked below
	if c.ctx.Err() != nil {
		return
	}
	code := cmd.ProcessState.ExitCode()
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() {
		code = 128 + int(status.Signal())
	}
	c.t.Logf("index %s, pod %d of it: exit code %d", index, try, code)
	if code != 0 {
		c.t.Logf("%s", said.Bytes()[max(0, said.Len()-300):])
	}
	phase := corev1.PodSucceeded
	if code != 0 {
		phase = corev1.PodFailed
	}
	now := metav1.Now()
	c.tell(pod, corev1.PodStatus{Phase: phase, ContainerStatuses: []corev1.ContainerStatus{{
		Name: container.Name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: int32(code),
			FinishedAt: now}},
	}}})
}

// tell updates the status of a pod.
func (c *cluster) tell(pod *corev1.Pod, status corev1.PodStatus) {
	patch, err := json.Marshal(map[string]any{"status": status})
	if err == nil {
		_, err = c.client.CoreV1().Pods(namespace).Patch(c.ctx, pod.Name, types.StrategicMergePatchType, patch,
			metav1.PatchOptions{}, "status")
	}
	if err != nil && c.ctx.Err() == nil {
		c.t.Error(err)
	}
}

// finish submits a Job and waits until it ends.
func (c *cluster) finish(text []byte) *batchv1.Job {
	c.t.Helper()
	job, err := admit(text)
	if err != nil {
		c.t.Fatal(err)
	}
	jobs := c.client.BatchV1().Jobs(namespace)
	if _, err := jobs.Create(c.ctx, job, metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
	for range 3000 {
		job, err := jobs.Get(c.ctx, job.Name, metav1.GetOptions{})
		if err != nil {
			c.t.Fatal(err)
		}
		for _, condition := range job.Status.Conditions {
			if (condition.Type == batchv1.JobComplete || condition.Type == batchv1.JobFailed) &&
				condition.Status == corev1.ConditionTrue {
				c.t.Logf("%s: %s %s; completed %s, failed %s", condition.Type, condition.Reason, condition.Message,
					job.Status.CompletedIndexes, ptr.Deref(job.Status.FailedIndexes, ""))
				return job
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	job, err = jobs.Get(c.ctx, job.Name, metav1.GetOptions{})
	pods, _ := c.client.CoreV1().Pods(namespace).List(c.ctx, metav1.ListOptions{})
	for _, pod := range pods.Items {
		c.t.Logf("%s: %s, finalizers %v", pod.Name, pod.Status.Phase, pod.Finalizers)
	}
	c.t.Fatalf("the Job did not end within five minutes: %+v, %v", job.Status, err)
	return nil
}

func write(t *testing.T, text string) string {
	path := filepath.Join(t.TempDir(), "own.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

const small = `name: own
data:
  - {name: P, synth: {set: prototypes, bags: 60, features: 8, min_size: 2, max_size: 4}, r: [1, 2]}
learners:
  - {name: demipl, spec: demipl, set: {train.epochs: 300, train.engine: gorgonia}}
splits: {count: 4}
`

// After pods are evicted, killed and stopped, the Job continues, and the report is identical to that
// of one process.
func TestDisruptions(t *testing.T) {
	m := kubernetes.Build(t)
	file, one, many := write(t, small), filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "many")
	m.Run(t, "experiment", file, "-o", one)
	text, _ := m.Plan(t, many, file, "--shards", "4", "--workers", "3")
	c := start(t, m, many)
	c.harm = func(index string, try int, pod *corev1.Pod, p *os.Process) {
		if try > 1 {
			return
		}
		time.Sleep(500 * time.Millisecond)
		switch index {
		case "0": // the node is drained
			c.tell(pod, corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{
				Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI",
				LastTransitionTime: metav1.Now()}}})
			_ = p.Signal(syscall.SIGTERM)
		case "1": // out of memory
			_ = p.Kill()
		case "2": // stopped without a reason
			_ = p.Signal(syscall.SIGTERM)
		}
	}
	job := c.finish(text)
	if job.Status.Succeeded != 4 || job.Status.CompletedIndexes != "0-3" {
		t.Errorf("%+v", job.Status)
	}
	for _, index := range []string{"0", "1", "2"} {
		if c.tries[index] != 2 {
			t.Errorf("index %s had %d pods instead of 2", index, c.tries[index])
		}
	}
	for _, dir := range []string{one, many} {
		m.Run(t, "report", dir)
	}
	if out, err := exec.Command("diff", "-r", filepath.Join(one, "report"), filepath.Join(many,
		"report")).CombinedOutput(); err != nil {
		t.Errorf("the reports differ: %v\n%s", err, out)
	}
}

// A shard with failed cells fails its index and does not affect others. A new plan ends the Job of the
// previous plan at once.
func TestFailures(t *testing.T) {
	m := kubernetes.Build(t)
	quick := strings.NewReplacer("300", "3", "count: 4", "count: 1").Replace(small)
	overflowing := strings.Replace(quick, "splits:", "  - {name: bad, spec: demipl, set: {train.epochs: 3, train.lr: "+
		"1e30, train.engine: gorgonia}}\nsplits:", 1)
	dir := filepath.Join(t.TempDir(), "dir")
	text, shards := m.Plan(t, dir, write(t, overflowing), "--shards", "4", "--workers", "4")
	job := start(t, m, dir).finish(text)
	if job.Status.FailedIndexes == nil || job.Status.Succeeded == 0 ||
		int(job.Status.Succeeded+job.Status.Failed) != shards {
		t.Errorf("%+v", job.Status)
	}

	again, file := filepath.Join(t.TempDir(), "again"), write(t, quick)
	former, _ := m.Plan(t, again, file, "--shards", "2")
	m.Plan(t, again, file, "--shards", "1")
	c := start(t, m, again)
	job = c.finish(former)
	last := job.Status.Conditions[len(job.Status.Conditions)-1]
	if last.Type != batchv1.JobFailed || last.Reason != batchv1.JobReasonPodFailurePolicy || len(c.tries) > 2 {
		t.Errorf("%+v", job.Status)
	}
}
