package language

// bestRules checks the settings of train.best against each other and against the split.
func (c *checker) bestRules() {
	t, s := &c.spec.Train, &c.spec.Data.Split
	if t.Best.V == "" {
		if t.Patience.Set() {
			note(c.add(t.Patience.Pos, "train.early_stopping has no effect without train.best"), "name the measure of the validation bags, such as best: loss")
		}
		if t.Refit.Set() {
			note(c.add(t.Refit.Pos, "train.refit has no effect without train.best"), "name the measure of the validation bags, such as best: loss")
		}
	} else if s.Index.V == "" && s.Validation.V == 0 {
		note(c.add(t.Best.Pos, "train.best needs validation bags, but data.split has none"), "add data: {split: {validation: 0.15}}, or the part validation to an index file")
	}
}
