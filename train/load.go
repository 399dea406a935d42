package train

// LoadState reads the state of an engine, and the number of epochs behind it,
// from the newest whole checkpoint in dir. With train.best, the parameters are those of the
// best epoch so far. It changes nothing there. Without a
// checkpoint the error wraps fs.ErrNotExist.
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

// LoadIdentity reads what the newest whole checkpoint in dir belongs to. Errors
// are as in LoadState.
func LoadIdentity(dir string) (Identity, error) {
	c, _, err := newestCheckpoint(dir)
	if err != nil {
		return Identity{}, err
	}
	return c.Identity, nil
}
