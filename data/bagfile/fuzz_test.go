// No file makes a reader panic or take much memory.

package bagfile

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/testkit/testsupport"
)

// fuzzLimit keeps hostile inputs of the fuzzer small.
var fuzzLimit = Reading{MaxBytes: 1 << 22}

// checkRead checks what must hold for every set that a reader gives out: it is valid and goes through .npz and CSV
// unchanged.
func checkRead(t *testing.T, d *data.Dataset, err error, o Reading) {
	t.Helper()
	if err != nil {
		if !strings.Contains(err.Error(), "fuzz") {
			t.Errorf("the error does not name the file: %v", err)
		}
		return
	}
	if err := o.Validate(d, "again"); err != nil {
		t.Fatalf("a set was read that is not valid: %v", err)
	}
	var npz bytes.Buffer
	if err := writeNPZ(&npz, d); err != nil {
		t.Fatal(err)
	}
	again, err := decodeNPZ(bytes.NewReader(npz.Bytes()), int64(npz.Len()), "fuzz.npz", o)
	if err != nil || again.Hash() != d.Hash() {
		t.Fatalf(".npz changes the set (%v)", err)
	}
	var text bytes.Buffer
	if err := writeCSV(&text, d); err != nil {
		return // class names that CSV cannot represent
	}
	again, err = decodeCSV(&text, "fuzz.csv", o)
	if err != nil || again.Hash() != d.Hash() {
		t.Fatalf("CSV changes the set (%v)", err)
	}
}

func addFiles(f *testing.F, files []badFile, ending string) {
	for _, b := range files {
		if strings.HasSuffix(b.name, ending) && len(b.bytes) < 1<<16 {
			f.Add(b.bytes)
		}
	}
}

func FuzzNPZ(f *testing.F) {
	var whole bytes.Buffer
	if err := writeNPZ(&whole, small()); err != nil {
		f.Fatal(err)
	}
	f.Add(whole.Bytes())
	addFiles(f, badNPZ(f), ".npz")
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := decodeNPZ(bytes.NewReader(b), int64(len(b)), "fuzz.npz", fuzzLimit)
		checkRead(t, d, err, fuzzLimit)
	})
}

// FuzzNPY reads the arrays of an archive, whose checksums would stop the fuzzer.
func FuzzNPY(f *testing.F) {
	f.Add(f4([]int{3, 2}, 1, 2, 3, 4, 5, 6).bytes)
	f.Add(bytes.Replace(f4([]int{3, 2}, 1, 2, 3, 4, 5, 6).bytes, []byte("False"), []byte("True "), 1))
	f.Add(append(npyStart(">i2", 2), 0, 1, 0, 2))
	f.Add(append(npyStart("<U2", 2), make([]byte, 16)...))
	f.Add(append(npyStart("|b1", 2, 1), 0, 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, read := range []func(h *npyHeader, r *bytes.Reader) (int, error){
			func(h *npyHeader, r *bytes.Reader) (int, error) { x, err := h.floats(r, nil); return len(x), err },
			func(h *npyHeader, r *bytes.Reader) (int, error) { x, err := h.ints(r, "numbers"); return len(x), err },
			func(h *npyHeader, r *bytes.Reader) (int, error) { x, err := h.strings(r); return len(x), err },
		} {
			r := bytes.NewReader(b)
			h, err := readNpyHeader(r)
			if err != nil || h.cost() > int64(fuzzLimit.MaxBytes.Budget().Bytes) {
				return
			}
			if n, err := read(h, r); err == nil && n != h.count && h.size > 0 {
				t.Errorf("%d of %d elements were read", n, h.count)
			}
		}
	})
}

func FuzzCSV(f *testing.F) {
	var whole bytes.Buffer
	if err := writeCSV(&whole, small()); err != nil {
		f.Fatal(err)
	}
	f.Add(whole.Bytes())
	addFiles(f, badCSV(f), ".csv")
	f.Add([]byte("bag,label,f1\n1,cat,2\n2,,3\n"))
	f.Add([]byte("f1\n2\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := decodeCSV(bytes.NewReader(b), "fuzz.csv", fuzzLimit)
		checkRead(t, d, err, fuzzLimit)
		forModel := fuzzLimit
		forModel.Columns.ModelClasses = []string{"cat", "dog"}
		several := fuzzLimit
		several.Labels = MultiLabels
		frame := fuzzLimit
		frame.Form, frame.DetectLabels = FrameForm, true
		for _, o := range []Reading{forModel, several, frame} {
			d, err = decodeCSV(bytes.NewReader(b), "fuzz.csv", o)
			checkRead(t, d, err, o)
		}
	})
}

func FuzzMAT(f *testing.F) {
	testsupport.AddFiles(f, filepath.Join("testdata", "*.mat"))
	addFiles(f, badMAT(f), ".mat")
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := decodeMAT(bytes.NewReader(b), "fuzz.mat", fuzzLimit)
		checkRead(t, d, err, fuzzLimit)
	})
}
