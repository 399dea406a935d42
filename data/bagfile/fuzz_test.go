package bagfile

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/datatest"
)

// fuzzLimit keeps hostile inputs of the fuzzer small.
var fuzzLimit = Options{MaxBytes: 1 << 22}

// checkRead checks what must hold for every set that a reader gives out: it is
// valid and goes through .npz and CSV unchanged.
func checkRead(t *testing.T, d *data.Dataset, err error) {
	t.Helper()
	if err != nil {
		if !strings.Contains(err.Error(), "fuzz") {
			t.Errorf("the error does not name the file: %v", err)
		}
		return
	}
	if err := d.Validate("again"); err != nil {
		t.Fatalf("a set was read that is not valid: %v", err)
	}
	var npz bytes.Buffer
	if err := writeNPZ(&npz, d); err != nil {
		t.Fatal(err)
	}
	again, err := decodeNPZ(bytes.NewReader(npz.Bytes()), int64(npz.Len()), "fuzz.npz", Options{})
	if err != nil || again.Hash() != d.Hash() {
		t.Fatalf("the set changes on its way through .npz (%v)", err)
	}
	var text bytes.Buffer
	if err := writeCSV(&text, d); err != nil {
		return // class names that CSV cannot hold
	}
	again, err = decodeCSV(&text, "fuzz.csv", Options{})
	if err != nil || again.Hash() != d.Hash() {
		t.Fatalf("the set changes on its way through CSV (%v)", err)
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
	if err := writeNPZ(&whole, datatest.Small()); err != nil {
		f.Fatal(err)
	}
	f.Add(whole.Bytes())
	addFiles(f, badNPZ(f), ".npz")
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := decodeNPZ(bytes.NewReader(b), int64(len(b)), "fuzz.npz", fuzzLimit)
		checkRead(t, d, err)
	})
}

// FuzzNPY goes for the arrays inside, which the checksums of the archive
// protect from the fuzzer.
func FuzzNPY(f *testing.F) {
	f.Add(f4([]int{3, 2}, 1, 2, 3, 4, 5, 6).bytes)
	f.Add(bytes.Replace(f4([]int{3, 2}, 1, 2, 3, 4, 5, 6).bytes, []byte("False"), []byte("True "), 1))
	f.Add(append(npyStart(">i2", 2), 0, 1, 0, 2))
	f.Add(append(npyStart("<U2", 2), make([]byte, 16)...))
	f.Add(append(npyStart("|b1", 2, 1), 0, 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, read := range []func(h *npyHeader, r *bytes.Reader) (int, error){
			func(h *npyHeader, r *bytes.Reader) (int, error) { x, err := h.floats(r); return len(x), err },
			func(h *npyHeader, r *bytes.Reader) (int, error) { x, err := h.ints(r, "numbers"); return len(x), err },
			func(h *npyHeader, r *bytes.Reader) (int, error) { x, err := h.strings(r); return len(x), err },
		} {
			r := bytes.NewReader(b)
			h, err := readNpyHeader(r)
			if err != nil || h.cost() > fuzzLimit.MaxBytes.Bytes() {
				return
			}
			if n, err := read(h, r); err == nil && n != h.count && h.size > 0 {
				t.Errorf("%d elements were read of %d", n, h.count)
			}
		}
	})
}

func FuzzCSV(f *testing.F) {
	var whole bytes.Buffer
	if err := writeCSV(&whole, datatest.Small()); err != nil {
		f.Fatal(err)
	}
	f.Add(whole.Bytes())
	addFiles(f, badCSV(f), ".csv")
	f.Add([]byte("bag,label,f1\n1,cat,2\n2,,3\n"))
	f.Add([]byte("f1\n2\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := decodeCSV(bytes.NewReader(b), "fuzz.csv", fuzzLimit)
		checkRead(t, d, err)
		forModel := fuzzLimit
		forModel.Columns.Classes = []string{"cat", "dog"}
		d, err = decodeCSV(bytes.NewReader(b), "fuzz.csv", forModel)
		checkRead(t, d, err)
	})
}

func FuzzMAT(f *testing.F) {
	names, err := filepath.Glob(filepath.Join("testdata", "*.mat"))
	if err != nil || len(names) == 0 {
		f.Fatal("no .mat files in testdata", err)
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	addFiles(f, badMAT(f), ".mat")
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := decodeMAT(bytes.NewReader(b), "fuzz.mat", fuzzLimit)
		checkRead(t, d, err)
	})
}
