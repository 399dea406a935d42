// The classes of MAT arrays.

package rawfile

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

func readFile(t testing.TB, name string) map[string]*MATArray {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "bagfile", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	vars, err := ReadMAT(bytes.NewReader(raw), FixedLimit("the file", 1<<30))
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]*MATArray{}
	for _, v := range vars {
		byName[v.Name] = v
	}
	return byName
}

func TestMATClasses(t *testing.T) {
	for _, file := range []string{"classes.mat", "classes-packed.mat"} {
		t.Run(file, func(t *testing.T) {
			vars := readFile(t, file)
			for name, class := range map[string]MATClass{
				"float64": MATDouble, "float32": MATSingle, "int8": MATInt8, "uint8": MATUint8, "int16": MATInt16,
				"uint16": MATUint16,
				"int32":  MATInt32, "uint32": MATUint32, "int64": MATInt64, "uint64": MATUint64,
			} {
				want := &MATArray{Name: name, Class: class, Dims: []int{2, 3}, Numbers: []float64{1, 4, 2, 5, 3, 100}}
				if got := vars[name]; !reflect.DeepEqual(got, want) {
					t.Errorf("%s: got %+v, want %+v", name, got, want)
				}
			}
			cube := make([]float64, 24)
			for i := range cube { // column-major order of numbers counted in row-major order
				cube[i] = float64(i%2*12 + i/2%3*4 + i/6)
			}
			for _, want := range []*MATArray{
				{Name: "negative", Class: MATInt8, Dims: []int{1, 2}, Numbers: []float64{-1, -128}},
				{Name: "large", Class: MATInt64, Dims: []int{1, 1}, Numbers: []float64{1 << 40}},
				{Name: "logical", Class: MATUint8, Dims: []int{1, 2}, Numbers: []float64{1, 0}},
				{Name: "complex", Class: MATDouble, Dims: []int{1, 2}, Complex: true},
				{Name: "cube", Class: MATDouble, Dims: []int{2, 3, 4}, Numbers: cube},
				{Name: "empty", Class: MATDouble, Dims: []int{0, 3}, Numbers: []float64{}},
				{Name: "text", Class: MATChar, Dims: []int{1, 4}},
				{Name: "rows", Class: MATChar, Dims: []int{2, 3}},
				{Name: "structure", Class: MATStruct, Dims: []int{1, 1}},
				{Name: "nested", Class: MATCell, Dims: []int{1, 2}, Cells: []*MATArray{
					{Class: MATDouble, Dims: []int{1, 1}, Numbers: []float64{1}},
					{Class: MATCell, Dims: []int{1, 2}, Cells: []*MATArray{
						{Class: MATChar, Dims: []int{1, 1}},
						{Class: MATDouble, Dims: []int{0, 0}, Numbers: []float64{}},
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

func show(a *MATArray) string {
	if a == nil {
		return "nothing"
	}
	text := fmt.Sprintf("%+v", *a)
	for _, c := range a.Cells {
		text += "\n  " + show(c)
	}
	return text
}
