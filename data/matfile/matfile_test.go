package matfile

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

func readFile(t testing.TB, name string) map[string]*Array {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "bagfile", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	vars, err := Read(bytes.NewReader(raw), 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]*Array{}
	for _, v := range vars {
		byName[v.Name] = v
	}
	return byName
}

func TestClasses(t *testing.T) {
	for _, file := range []string{"classes.mat", "classes-packed.mat"} {
		t.Run(file, func(t *testing.T) {
			vars := readFile(t, file)
			for name, class := range map[string]Class{
				"float64": Double, "float32": Single, "int8": Int8, "uint8": Uint8, "int16": Int16, "uint16": Uint16,
				"int32": Int32, "uint32": Uint32, "int64": Int64, "uint64": Uint64,
			} {
				want := &Array{Name: name, Class: class, Dims: []int{2, 3}, Numbers: []float64{1, 4, 2, 5, 3, 100}}
				if got := vars[name]; !reflect.DeepEqual(got, want) {
					t.Errorf("%s: got %+v, want %+v", name, got, want)
				}
			}
			cube := make([]float64, 24)
			for i := range cube { // column-major order of numbers counted in row-major order
				cube[i] = float64(i%2*12 + i/2%3*4 + i/6)
			}
			for _, want := range []*Array{
				{Name: "negative", Class: Int8, Dims: []int{1, 2}, Numbers: []float64{-1, -128}},
				{Name: "large", Class: Int64, Dims: []int{1, 1}, Numbers: []float64{1 << 40}},
				{Name: "logical", Class: Uint8, Dims: []int{1, 2}, Numbers: []float64{1, 0}},
				{Name: "complex", Class: Double, Dims: []int{1, 2}, Complex: true},
				{Name: "cube", Class: Double, Dims: []int{2, 3, 4}, Numbers: cube},
				{Name: "empty", Class: Double, Dims: []int{0, 3}, Numbers: []float64{}},
				{Name: "text", Class: Char, Dims: []int{1, 4}},
				{Name: "rows", Class: Char, Dims: []int{2, 3}},
				{Name: "structure", Class: Struct, Dims: []int{1, 1}},
				{Name: "nested", Class: Cell, Dims: []int{1, 2}, Cells: []*Array{
					{Class: Double, Dims: []int{1, 1}, Numbers: []float64{1}},
					{Class: Cell, Dims: []int{1, 2}, Cells: []*Array{
						{Class: Char, Dims: []int{1, 1}},
						{Class: Double, Dims: []int{0, 0}, Numbers: []float64{}},
					}},
				}},
			} {
				if got := vars[want.Name]; !reflect.DeepEqual(got, want) {
					t.Errorf("%s: got %s, want %s", want.Name, show(got), show(want))
				}
			}
		})
	}
}

func show(a *Array) string {
	if a == nil {
		return "nothing"
	}
	text := fmt.Sprintf("%+v", *a)
	for _, c := range a.Cells {
		text += "\n  " + show(c)
	}
	return text
}
