package train

import (
	"fmt"

	"github.com/miplc/miplc/data"
)

// evaluate predicts the training and the test bags with the state after an epoch.
func (t *trainer) evaluate(epoch int, m *Metrics) error {
	p := Progress{Epoch: epoch, Epochs: t.Epochs, Evaluating: true, Loss: m.Loss}
	p.Steps = len(data.Batches(t.Split.Train, t.batchSize)) + len(data.Batches(t.Split.Test, t.batchSize))
	tick := func(n int) {
		p.Step += n
		p.Left = t.clock.left()
		t.observer.Step(p)
	}
	var found [2]*Outcome
	for i, bags := range [][]int{t.Split.Train, t.Split.Test} {
		var err error
		if found[i], err = t.predict(bags, tick); err != nil {
			return fmt.Errorf("evaluation after epoch %d: %w", epoch, err)
		}
	}
	t.Evaluated(epoch, m, found)
	return nil
}

// predict runs the inference graph over bags in batches.
func (t *trainer) predict(bags []int, tick func(batches int)) (*Outcome, error) {
	out, k := &Outcome{}, t.Data.Classes
	for _, chunk := range data.Batches(bags, t.batchSize) {
		if err := t.ctx.Err(); err != nil {
			return nil, err
		}
		instances, bagOf := t.feed.raw(chunk)
		probabilities, attention, err := t.engine.Predict(instances, bagOf, len(chunk))
		if err != nil {
			return nil, fmt.Errorf("prediction of %s: %w", t.nameBags(chunk), err)
		}
		if len(probabilities) != len(chunk)*k || len(attention) != len(bagOf) {
			return nil, fmt.Errorf("engine %s gave %d probabilities and %d attention scores for %d bags of %d instances",
				t.engine.Name(), len(probabilities), len(attention), len(chunk), len(bagOf))
		}
		for i, bag := range chunk {
			n := t.Data.Size(bag)
			t.Add(out, bag, Argmax(probabilities[i*k:(i+1)*k]), attention[:n])
			attention = attention[n:]
		}
		tick(1)
	}
	return out, nil
}
