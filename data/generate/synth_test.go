// Generated bags have the sizes, labels and candidates that were asked for.

package generate

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/testkit/testsupport"
)

func TestPrototypes(t *testing.T) {
	d, err := Prototypes(DefaultPrototypes)
	if err != nil {
		t.Fatal(err)
	}
	s := data.Describe(d)
	if s.Bags != 300 || s.Dim != 20 || s.Classes != 5 || s.MeanLabels != 2 || s.MinSize != 8 || s.MaxSize != 15 {
		t.Errorf("generated: %+v", s)
	}
	if math.Abs(s.PositiveShare-0.2) > 0.02 {
		t.Errorf("%v of the instances are positive, want about 0.2", s.PositiveShare)
	}
	for _, c := range s.ByClass {
		if c.Truth != 60 {
			t.Errorf("class %s has %d bags, want 60", c.Name, c.Truth)
		}
	}
	if !slices.IsSorted(d.Labels) {
		t.Error("the bags are not in the order of their classes")
	}
	again, _ := Prototypes(DefaultPrototypes)
	if again.Hash() != s.Hash {
		t.Error("the same options give a different set")
	}
	if want := goldenPrototypes; s.Hash != want {
		t.Errorf("the set has the hash %s, want %s", s.Hash, want)
	}
	checkDrawn(t, d, 1, 0.2)
}

// checkDrawn checks the properties of every generated set of mixed bags.
func checkDrawn(t *testing.T, d *data.Dataset, r int, share float64) {
	t.Helper()
	for i := range d.Bags() {
		n, positives := 0, 0
		for _, s := range d.CandidateMask(i) {
			n += int(s)
		}
		if n != r+1 {
			t.Fatalf("bag %d has %d candidates, want %d", i+1, n, r+1)
		}
		for _, c := range d.InstLabels[d.Offsets[i]:d.Offsets[i+1]] {
			if c >= 0 {
				positives++
			}
			if c >= 0 && c != d.Labels[i] {
				t.Fatalf("bag %d of class %d has an instance of class %d", i+1, d.Labels[i], c)
			}
		}
		if want := max(1, int(math.Round(share*float64(d.Size(i))))); positives != want {
			t.Fatalf("bag %d of %d instances has %d positive ones, want %d", i+1, d.Size(i), positives, want)
		}
	}
}

// False positive labels are uniform over the other classes.
func TestFalsePositivesAreUniform(t *testing.T) {
	o := DefaultPrototypes
	o.Bags, o.Candidates, o.Features, o.MinSize, o.MaxSize = 4000, 2, 1, 1, 1
	d, err := Prototypes(o)
	if err != nil {
		t.Fatal(err)
	}
	var count [5][5]int
	for i := range d.Bags() {
		for c, s := range d.CandidateMask(i) {
			count[d.Labels[i]][c] += int(s)
		}
	}
	for label, row := range count {
		for c, n := range row {
			// 800 bags a class, each other label with probability 1/2: deviation 14.
			if c != label && (n < 330 || n > 470) {
				t.Errorf("label %d is a candidate of %d bags of class %d, want about 400", c, n, label)
			}
		}
	}
}

func TestPrototypeErrors(t *testing.T) {
	for want, change := range map[string]func(*PrototypeOptions){
		"at least 2 are needed":         func(o *PrototypeOptions) { o.Classes = 1 },
		"at least one for each":         func(o *PrototypeOptions) { o.Bags = 4 },
		"features is 0":                 func(o *PrototypeOptions) { o.Features = 0 },
		"false positive labels per bag": func(o *PrototypeOptions) { o.Candidates = 5 },
		"share of positive instances":   func(o *PrototypeOptions) { o.Positives = 0 },
		"bag sizes from 9 to 8":         func(o *PrototypeOptions) { o.MinSize, o.MaxSize = 9, 8 },
		"noise is NaN":                  func(o *PrototypeOptions) { o.Noise = math.NaN() },
		"more than 2^31":                func(o *PrototypeOptions) { o.MaxSize = 1 << 40 },
	} {
		o := DefaultPrototypes
		change(&o)
		if _, err := Prototypes(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
}

func TestNamedPrototypes(t *testing.T) {
	plain, err := Synth(PrototypeSet, Design{ClassCount: 2, Bags: 10})
	if err != nil {
		t.Fatal(err)
	}
	named, err := Synth(PrototypeSet, Design{Classes: []string{"cat", "dog"}, Bags: 10})
	if err != nil || !slices.Equal(named.AllClassNames(), []string{"cat", "dog"}) ||
		!slices.Equal(named.Instances, plain.Instances) {
		t.Errorf("%v, %v", named, err)
	}
}

func TestSynthErrors(t *testing.T) {
	for _, c := range []struct {
		set  string
		o    Design
		want string
	}{
		{"mnist-mipil", Design{}, `did you mean "mnist-mipl"`},
		{"mnist-mipl", Design{R: new(5)}, "0 to 4 are possible with 5 classes"},
		{"mnist-mipl", Design{Bags: 501}, "501 bags cannot be the same number"},
		{"mnist-mipl", Design{Classes: []string{"1"}}, "at least 2 are needed"},
		{"mnist-mipl", Design{Classes: []string{"1", "eleven"}}, `no class "eleven"`},
		{"mnist-mipl", Design{Classes: []string{"1", "1"}}, "is requested twice"},
		{"mnist-mipl", Design{Classes: digitNames}, "no class remains for the negative"},
		{"fmnist-mipl", Design{Source: "no-such-folder"}, "no such file"},
		{"birdsong-mipl", Design{Source: "no-such-folder"}, "no such file"},
		{"sival6-mipl", Design{Source: "no-such-folder"}, "no such file"},
		{"birdsong-mipl", Design{Positives: 1.5}, "above 0 and at most 1"},
		{"sival6-mipl", Design{Positives: 0.5}, "the bags of sival6-mipl are those of the source"},
		{"sival6-mipl", Design{MaxSize: 5}, "the bags of sival6-mipl are those of the source"},
		{PrototypeSet, Design{Classes: []string{"a", "b"}, ClassCount: 2}, "exclude their number"},
		{PrototypeSet, Design{Classes: []string{"a", "a"}, Bags: 10}, `are both named "a"`},
		{"mnist-mipl", Design{Noise: new(0.0)}, "noise and a number of classes are settings of prototypes"},
	} {
		if _, err := Synth(c.set, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Synth(%s, %+v): %v, want %q", c.set, c.o, err, c.want)
		}
	}
}

// The datasets generated from the published data have the sizes of Table 1 of the paper.
func TestPaperSets(t *testing.T) {
	dir := testsupport.Data(t, ".", "docs/paper-data.md says what is in it")
	for _, c := range []struct {
		set                string
		r                  int
		bags, dim, classes int
		mean, within       float64
	}{
		{"mnist-mipl", 1, 500, 784, 5, 41.33, 0.5},
		{"fmnist-mipl", 2, 500, 784, 5, 41.62, 0.5},
		{"birdsong-mipl", 7, 1300, 38, 13, 37.25, 0.5},
		{"sival6-mipl", 3, 360, 30, 6, 31.69, 0.01},
	} {
		t.Run(c.set, func(t *testing.T) {
			d, err := Synth(c.set, Design{Source: dir, R: &c.r, Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			s := data.Describe(d)
			if s.Bags != c.bags || s.Dim != c.dim || s.Classes != c.classes || s.MeanLabels != float64(c.r+1) ||
				math.Abs(s.MeanSize-c.mean) > c.within {
				t.Errorf("drawn: %s", data.StatsMarkdown(s))
			}
			if want := fmt.Sprintf("%s-r%d", c.set, c.r); d.Name != want {
				t.Errorf("the name is %s, want %s", d.Name, want)
			}
			for _, class := range s.ByClass {
				if class.Truth != c.bags/c.classes {
					t.Errorf("class %s has %d bags", class.Name, class.Truth)
				}
			}
			if !slices.IsSorted(d.Labels) {
				t.Error("the bags are not in the order of their classes")
			}
			if d.InstLabels != nil {
				checkDrawn(t, d, c.r, positives)
			}
			if c.dim == 784 {
				return // same code; reading the images twice more would take seconds
			}
			again, err := Synth(c.set, Design{Source: dir, R: &c.r, Seed: 1})
			if err != nil || again.Hash() != s.Hash {
				t.Errorf("the same seed gives a different set (%v)", err)
			}
			other, err := Synth(c.set, Design{Source: dir, R: &c.r, Seed: 2})
			if err != nil || other.Hash() == s.Hash {
				t.Errorf("another seed gives the same set (%v)", err)
			}
		})
	}
}

// The pixels of image sets are scaled as in the examples of torchvision. The expected numbers come
// from torchvision.transforms.Normalize.
func TestImagesAreScaled(t *testing.T) {
	for set, c := range map[string]struct {
		folder       string
		black, white float32
	}{
		"mnist-mipl":  {"mnist", -0.42421296, 2.8214867},
		"fmnist-mipl": {"fashion-mnist", -0.81019837, 2.0226629},
	} {
		dir := t.TempDir()
		writeTwoPixelImages(t, filepath.Join(dir, c.folder), 10)
		d, err := Synth(set, Design{Source: dir, R: new(0), MinSize: 2, MaxSize: 2, Bags: 5})
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(d.Instances); i += 2 {
			if d.Instances[i] != c.black || d.Instances[i+1] != c.white {
				t.Fatalf("%s: black and white became %v, want %v and %v", set, d.Instances[i:i+2], c.black, c.white)
			}
		}
	}
}

// writeTwoPixelImages writes IDX files with n images of each of ten classes: one black
// and one white pixel.
func writeTwoPixelImages(t *testing.T, dir string, n int) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	images, labels := []byte{0, 0, 8, 3, 0, 0, 0, byte(10 * n), 0, 0, 0, 1, 0, 0, 0, 2}, []byte{0, 0, 8, 1, 0, 0, 0,
		byte(10 * n)}
	for i := range 10 * n {
		images, labels = append(images, 0, 255), append(labels, byte(i%10))
	}
	for name, b := range map[string][]byte{idxImages: images, idxLabels: labels} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// Classes can be chosen by name and by number.
func TestSynthClasses(t *testing.T) {
	dir := testsupport.Data(t, ".", "docs/paper-data.md says what is in it")
	d, err := Synth("birdsong-mipl", Design{Source: dir, Bags: 30, Classes: []string{"HAFL", "2", "brcr"}, R: new(0)})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"HAFL", "WIWR", "BRCR"}; !slices.Equal(d.ClassNames, want) {
		t.Errorf("the classes are %v, want %v", d.ClassNames, want)
	}
	checkDrawn(t, d, 0, positives)
}

// goldenPrototypes is the hash of the default set. Published results depend on it.
const goldenPrototypes = "f9da3aca65f44affaa8dfe53135d7fed99bf9e73fb67436770d74db349e786e6"

// The mean of a bag says less about its class than its positive instances do. Given true labels, the
// nearest class mean finds the class of nearly all bags from their positive instances, but not from
// the means of whole bags. So a model with attention has an advantage.
func TestPrototypesRewardAttention(t *testing.T) {
	for seed := range uint64(5) {
		o := DefaultPrototypes
		o.Seed = seed
		d, err := Prototypes(o)
		if err != nil {
			t.Fatal(err)
		}
		all := nearestMean(d, func(int) bool { return true })
		positive := nearestMean(d, func(i int) bool { return d.InstLabels[i] >= 0 })
		if positive < 0.99 || all > 0.9 || all < 0.4 {
			t.Errorf("seed %d: nearest class mean finds %.3f from whole bags and %.3f from positive instances", seed, all,
				positive)
		}
	}
}

// nearestMean returns the accuracy of the nearest class mean on every second bag, trained on the
// other bags. It uses only the instances that use accepts.
func nearestMean(d *data.Dataset, use func(i int) bool) float64 {
	dim := d.Dim()
	embed := func(b int) []float64 {
		z, n := make([]float64, dim), 0.0
		for i := d.Offsets[b]; i < d.Offsets[b+1]; i++ {
			if use(i) {
				n++
				for j := range z {
					z[j] += float64(d.Instances[i*dim+j])
				}
			}
		}
		for j := range z {
			z[j] /= n
		}
		return z
	}
	center, count := make([][]float64, d.Classes), make([]float64, d.Classes)
	for c := range center {
		center[c] = make([]float64, dim)
	}
	for b := 0; b < d.Bags(); b += 2 {
		count[d.Labels[b]]++
		for j, v := range embed(b) {
			center[d.Labels[b]][j] += v
		}
	}
	right := 0
	for b := 1; b < d.Bags(); b += 2 {
		best, least := -1, math.Inf(1)
		z := embed(b)
		for c := range center {
			dist := 0.0
			for j, v := range z {
				dist += (v - center[c][j]/count[c]) * (v - center[c][j]/count[c])
			}
			if dist < least {
				best, least = c, dist
			}
		}
		if best == d.Labels[b] {
			right++
		}
	}
	return float64(right) / float64(d.Bags()/2)
}
