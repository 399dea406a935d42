// Trained states, read from the folder of a run.

package train

// LoadState reads the state and the number of finished epochs from the newest checkpoint in dir
// that is not damaged. With train.best, the parameters are those of the best epoch so far. It
// changes no files. Without a checkpoint the error wraps fs.ErrNotExist.
func LoadState(dir string) (*State, int, error) {
	c, _, err := newestCheckpoint(dir)
	if err != nil {
		return nil, 0, err
	}
	if params := c.best(); params != nil {
		return &State{Params: params}, c.Epoch, nil
	}
	return c.state(), c.Epoch, nil
}

// LoadIdentity reads the identity of the newest checkpoint in dir that is not damaged. Errors
// are those of LoadState.
func LoadIdentity(dir string) (Identity, error) {
	c, _, err := newestCheckpoint(dir)
	if err != nil {
		return Identity{}, err
	}
	return c.Identity, nil
}

// CheckBegun returns an error if the run in the folder of a trial was begun with another spec or split.
// begun is the identity of its checkpoint. The hash of the dataset takes longer and is checked when training begins.
func (t *Trial) CheckBegun(begun Identity) error {
	want := begun
	want.Spec, want.Split = t.Program.Spec.Identity(), t.Split.Hash()
	return begun.check(want, t.Dir)
}
