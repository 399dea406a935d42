// Learners in place of models.

package language

import "testing"

// A spec that extends one with a model may replace the model by a learner. Inherited settings of the
// training are dropped.
func TestLearnerReplacesInheritedModel(t *testing.T) {
	s := mustParse(t, "name: x\nextends: demipl\nlearner: pl-aggd\ntrain: {seed: 7}\n")
	if !s.Fitted() || s.Learner.Kind.V != "pl-aggd" || s.Learner.Args["gamma"].Float() != 0.05 {
		t.Fatalf("learner %+v", s.Learner)
	}
	if len(s.Model.Blocks) > 0 || len(s.Loss) > 0 || s.Train.Seed.V != 7 {
		t.Errorf("the inherited model is still there: %+v, %+v", s.Model, s.Loss)
	}
	bare := mustParse(t, "name: x\ndata: {set: birdsong-mipl-r1.npz}\nlearner: pl-aggd\ntrain: {seed: 7}\n")
	if s.Description.V = ""; s.Identity() != bare.Identity() {
		t.Errorf("equal learners have different specs:\n%s\n%s", s.YAML(), bare.YAML())
	}
	checkRoundTrip(t, s)
}

func TestLearnerSettings(t *testing.T) {
	s := mustParse(t, "name: x\nextends: pl-aggd-mean\nlearner: {vector: maxmin}\n", "learner.mu=3",
		"learner.iterations=0")
	args := s.Learner.Args
	if args["vector"].Str() != "maxmin" || args["mu"].Float() != 3 || args["iterations"].Int() != 0 ||
		args["neighbours"].Int() != 10 {
		t.Errorf("%+v", args)
	}
	checkRoundTrip(t, s)
}

// A learner of another kind inherits no settings, even if they have the same name.
func TestLearnerOfAnotherKind(t *testing.T) {
	base := "name: x\nextends: pl-aggd-mean\nlearner: {iterations: 3}\n"
	if s := mustParse(t, base); s.Learner.Args["iterations"].Int() != 3 {
		t.Errorf("%+v", s.Learner.Args)
	}
	own := mustParse(t, "name: x\nlearner: miplgp\n")
	other := mustParse(t, "name: x\nextends: pl-aggd-mean\nlearner: {kind: miplgp}\n")
	if got, want := other.Learner.Args["iterations"].Int(), own.Learner.Args["iterations"].Int(); got != want ||
		got == 10 {
		t.Errorf("%d iterations, want the default %d", got, want)
	}
	if s := mustParse(t, "name: x\nextends: pl-aggd-mean\n", "learner.kind=miplgp"); s.Learner.Kind.V != "miplgp" {
		t.Errorf("kind by --set: %+v", s.Learner)
	}
	s := mustParse(t, "name: x\nextends: pl-aggd-maxmin\nlearner: {kind: pl-aggd}\n")
	if s.Learner.Args["vector"].Str() != "maxmin" {
		t.Errorf("the same kind does not inherit the settings: %+v", s.Learner.Args)
	}
}
