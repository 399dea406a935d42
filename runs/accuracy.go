package runs

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/export"
	"github.com/miplc/miplc/internal/onnxpb"
	"github.com/miplc/miplc/internal/parity"
	"github.com/miplc/miplc/internal/workers"
	"github.com/miplc/miplc/runtime"
	"github.com/miplc/miplc/runtime/onnxgo"
	"github.com/miplc/miplc/train"
)

// labelFunc gives the class of one bag of n instances.
type labelFunc func(instances []float32, n int) (int, error)

// JudgeAlone replaces the accuracies of a trained trial by those of the model
// that would be exported for one bag at a time. No file is written.
func JudgeAlone(ctx context.Context, t *train.Trial, report *train.Report, library string) error {
	p, params, err := exported(t, report)
	if err != nil {
		return err
	}
	meta, err := metadata(p, t, report.Engine, "")
	if err != nil {
		return err
	}
	spec := *p.Spec
	spec.Export.Signature.V = export.SignatureBag // of one bag at a time, whatever the file will be
	alone := *p
	alone.Spec = &spec
	pb, err := export.Model(&alone, params, meta)
	if err != nil {
		return err
	}
	content, err := onnxpb.Marshal(pb)
	if err != nil {
		return err
	}
	return judgeModel(ctx, t, report, content, library, interpreted(&alone, params))
}

// judgeModel replaces the accuracies of a trained trial by those of a model file, each
// bag predicted alone: in onnxruntime, where there is none or it is none of the
// file's back ends in onnx-go, and where that cannot run the model by other.
func judgeModel(ctx context.Context, t *train.Trial, report *train.Report, content []byte, library string, other labelFunc) error {
	for _, with := range []runtime.Option{runtime.WithLibrary(library), runtime.WithBackend(onnxgo.Backend())} {
		if model, err := runtime.OpenBytes(content, with, runtime.WithMaxInstances(math.MaxInt)); err == nil {
			defer model.Close()
			return judge(ctx, t, report, labelOf(ctx, model))
		}
	}
	return judge(ctx, t, report, other)
}

func labelOf(ctx context.Context, model *runtime.Model) labelFunc {
	return func(x []float32, n int) (int, error) {
		p, err := model.Predict(ctx, runtime.Bag{Instances: x, N: n})
		return p.Label, err
	}
}

func interpreted(p *compile.Program, params map[string][]float32) labelFunc {
	e := parity.NewReference(p.Infer, p.Signature.Instance, params).Engine(engineInterpreter)
	return func(x []float32, n int) (int, error) {
		probabilities, _, err := e.Predict(x, n)
		if err != nil {
			return 0, err
		}
		return train.Argmax(probabilities), nil
	}
}

// judge predicts all bags of the split, on all cores.
func judge(ctx context.Context, t *train.Trial, report *train.Report, label labelFunc) error {
	var found [2][]int
	for part, bags := range [][]int{t.Split.Train, t.Split.Test} {
		found[part] = make([]int, len(bags))
		errs := make([]error, len(bags))
		var failed atomic.Bool
		workers.Each(len(bags), 0, func(i int) {
			if errs[i] = ctx.Err(); errs[i] != nil || failed.Load() {
				return
			}
			bag := bags[i]
			if found[part][i], errs[i] = label(t.Data.Bag(bag), t.Data.Size(bag)); errs[i] != nil {
				errs[i] = fmt.Errorf("bag %d of %s: %w", bag+1, t.Data.Name, errs[i])
				failed.Store(true)
			}
		})
		if err := cmp.Or(errs...); err != nil {
			return fmt.Errorf("accuracy of the exported model: %w", err)
		}
	}
	report.Judge(t, found)
	return nil
}
