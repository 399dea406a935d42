// The command miplc data bags, which makes a dataset from images.

package cli

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/formats"
	"github.com/miplc/miplc/data/generate"
	"github.com/miplc/miplc/data/imagebags"
	"github.com/miplc/miplc/internal/diag"
)

// bagsOptions are the settings of miplc data bags.
type bagsOptions struct {
	datasetOutput
	Sources []string

	Generator  string
	Resize     string
	R          int
	Seed       uint64
	Candidates string
	Outside    string
	Unlabeled  bool // folders are not classes
	Workers    int
	Limits     imagebags.Limits

	// Settings of single generators.
	Row       imagebags.Row
	SBN       imagebags.SBN
	KMeansSeg imagebags.KMeansSeg
	SIFT      imagebags.SIFT
	Patches   imagebags.Patches
	flags     *pflag.FlagSet
	settings  map[string][]string // generators of each flag that is a setting of some
}

func bagsCommand(con *console.Console) *cobra.Command {
	o := &bagsOptions{
		datasetOutput: datasetOutput{Console: con}, Row: imagebags.DefaultRow, SBN: imagebags.DefaultSBN,
		KMeansSeg: imagebags.DefaultKMeansSeg, SIFT: imagebags.DefaultSIFT,
		Patches: imagebags.DefaultPatches, settings: map[string][]string{},
	}
	cmd := &cobra.Command{
		Use:   "bags --generator G IMAGES... -o FILE",
		Short: "Make a dataset from images",
		Long: `Make one bag per image and write them to one file. IMAGES are folders or zip archives
of JPEG, PNG and TIFF files. The class of an image is the name of its folder: cat for
tiles/cat/1.jpg. A generator cuts each image into instances:

  row        mean colours of the rows of a shrunk image
  sbn        blobs of 2x2 pixels of a shrunk image, with their neighbours
  kmeansseg  segments of similar colour and texture, by k-means
  sift       SIFT descriptors on a regular grid
  patches    squares of pixels, with their coordinates

Start with kmeansseg. With --resize 224, the first four give by default as many instances
per bag as in the DEMIPL paper. An image that cannot be decoded is an error that names it;
nothing is written.

By default, the only candidate of a bag is its true class. --r adds false ones, drawn at
random; --candidates reads candidates from a file of miplc data crowd. With --unlabelled,
the file has neither labels nor candidates, for miplc predict. The same images and options
always give the same file.`,
		Example: `  miplc data bags --generator kmeansseg tiles -o tiles.npz
  miplc data bags --generator sift --r 1 train.zip test.zip -o sift-r1.npz
  miplc data bags --generator patches --side 28 --gray photos -o patches.npz
  miplc data bags --generator row --unlabelled new -o new.npz
  miplc data bags --generator sbn --resize 224 --candidates candidates.csv photos -o sbn.npz`,
		Args: console.Args(console.Arguments("IMAGES...", &o.Sources)),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.flags = cmd.Flags()
			return runBags(cmd.Context(), o)
		},
	}
	o.addFlags(cmd)
	return cmd
}

// outsideFlag adds --outside. with is the flag that it needs.
func outsideFlag(f *pflag.FlagSet, to *string, with string) {
	f.StringVar(to, "outside", string(generate.OutsideError), "with "+with+", action if the true class is not a "+
		"candidate: error (stop), add (the class to the candidates), drop (the bag) or forget (keep the bag without true "+
		"label)")
	console.OneOf(f, "outside", string(generate.OutsideError), string(generate.OutsideAdd), string(generate.OutsideDrop),
		string(generate.OutsideForget))
}

func (o *bagsOptions) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false // by generator
	console.OutputFlag(cmd, &o.Output, "FILE", "output file: "+formats.Writable().Or())
	f.BoolVar(&o.Force, "force", false, "overwrite an existing output file")
	f.StringVar(&o.Generator, "generator", "", "generator: row, sbn, kmeansseg, sift or patches (required)")
	console.OneOf(f, "generator", imagebags.Names...)
	f.StringVar(&o.Resize, "resize", "", "size to which images are scaled first, in pixels, e.g. 224 (square) or "+
		"320x240 (default: unscaled)")
	f.IntVar(&o.R, "r", 0, "number of false labels per candidate set (default: 0)")
	f.Uint64Var(&o.Seed, "seed", 1, "seed of the false labels")
	f.StringVar(&o.Candidates, "candidates", "", "CSV file of candidate sets, as miplc data crowd writes it")
	outsideFlag(f, &o.Outside, "--candidates")
	f.BoolVar(&o.Unlabeled, "unlabelled", false, "write neither labels nor candidates, for miplc predict; folder "+
		"names are not classes")
	f.IntVar(&o.Workers, "workers", 0, "number of images processed at the same time (default: number of processors)")
	f.IntVar(&o.Limits.Pixels, "max-pixels", 0, "maximum number of pixels per image (default 25,000,000)")
	of := func(flag string, generators ...string) string {
		o.settings[flag] = generators
		return strings.Join(generators, ", ") + ": "
	}
	f.IntVar(&o.Row.Grid, "grid", o.Row.Grid, of("grid", "row", "sbn")+"side of the shrunk image in pixels")
	f.StringVar(&o.SBN.Neighbors, "neighbours", o.SBN.Neighbors,
		of("neighbours", "sbn")+"colours of the neighbours as difference from the blob or as value")
	f.IntVar(&o.KMeansSeg.Blob, "blob", o.KMeansSeg.Blob, of("blob", "kmeansseg")+"side of a blob in pixels")
	f.StringVar(&o.KMeansSeg.Color, "color", o.KMeansSeg.Color, of("color", "kmeansseg")+"colour space, ycbcr or luv")
	f.IntVar(&o.KMeansSeg.MaxSegments, "max-segments", o.KMeansSeg.MaxSegments,
		of("max-segments", "kmeansseg")+"maximum number of segments per image")
	f.Float64Var(&o.KMeansSeg.Distortion, "distortion", o.KMeansSeg.Distortion,
		of("distortion", "kmeansseg")+"stop adding segments when the mean squared distance of blobs from their segment is "+
			"at most this")
	f.Float64Var(&o.KMeansSeg.Improvement, "improvement", o.KMeansSeg.Improvement,
		of("improvement", "kmeansseg")+"stop adding segments when one more reduces that distance by at most this share of "+
			"the variance")
	f.IntVar(&o.SIFT.Patch, "patch", o.SIFT.Patch, of("patch", "sift")+"side of a patch in pixels")
	f.IntVar(&o.SIFT.Step, "step", o.SIFT.Step, of("step", "sift")+"distance between patches in pixels")
	f.Float64Var(&o.SIFT.Sigma, "sigma", o.SIFT.Sigma,
		of("sigma", "sift")+"standard deviation of the smoothing in pixels")
	f.IntVar(&o.Patches.Side, "side", o.Patches.Side, of("side", "patches")+"side of a square in pixels")
	f.IntVar(&o.Patches.Step, "stride", 0,
		of("stride", "patches")+"pixels from one square to the next (default: the side of a square)")
	f.BoolVar(&o.Patches.Gray, "gray", false, of("gray", "patches")+"one channel instead of red, green and blue")
	console.Limit(f, 0, 1000, "r")
	console.Limit(f, 0, math.MaxUint64, "seed")
	console.Limit(f, 1, 4096, "workers")
	console.Limit(f, 1, console.Most, "max-pixels", "grid", "blob", "max-segments", "patch", "step", "side", "stride")
	console.Limit(f, 0, console.Most, "distortion", "improvement")
	console.Limit(f, console.AboveZero, console.Most, "sigma")
}

// runBags generates the bags and writes them.
func runBags(ctx context.Context, o *bagsOptions) error {
	generator, err := o.generator()
	if err != nil {
		return err
	}
	size, err := parseSize(o.Resize)
	if err != nil {
		return err
	}
	if err := o.checkCandidates(); err != nil {
		return err
	}
	var table *generate.LabelTable
	if o.Candidates != "" {
		if table, err = generate.ReadCandidates(o.Candidates, nil); err != nil {
			return err
		}
	}
	sources, err := imagebags.FindImages(o.Sources, o.Limits)
	if err != nil {
		return err
	}
	defer sources.Close()
	if o.Unlabeled {
		sources.ForgetClasses()
	}
	return o.save(func() (*data.Dataset, error) {
		count := o.Console.Counter("images")
		set, err := imagebags.Bags(ctx, sources, imagebags.Cutting{Generator: generator, Resize: size, Workers: o.Workers,
			Limits: o.Limits, Progress: count.Progress})
		count.End()
		if err != nil {
			return nil, err
		}
		return o.candidates(set, table)
	}, append(sources.Files(), o.Candidates)...)
}

// generator returns the chosen one with its settings; a setting of another one is an error.
func (o *bagsOptions) generator() (imagebags.Generator, error) {
	if o.Generator == "" {
		return nil, console.Usagef("miplc data bags: --generator is missing; known are %s", strings.Join(imagebags.Names,
			", "))
	}
	var err error
	o.flags.Visit(func(f *pflag.Flag) {
		of := o.settings[f.Name]
		if err == nil && of != nil && !slices.Contains(of, o.Generator) {
			err = console.Usagef("--%s is a setting of %s, not of %s", f.Name, strings.Join(of, " and "), o.Generator)
		}
	})
	if err != nil {
		return nil, err
	}
	o.SBN.Grid = o.Row.Grid
	all := []imagebags.Generator{o.Row, o.SBN, o.KMeansSeg, o.SIFT, o.Patches}
	g := all[slices.IndexFunc(all, func(g imagebags.Generator) bool { return g.Name() == o.Generator })]
	return g, diag.Invalid(g.Check())
}

// parseSize parses "224" or "320x240". An empty text is the original size.
func parseSize(text string) (imagebags.Size, error) {
	if text == "" {
		return imagebags.Size{}, nil
	}
	wide, high, two := strings.Cut(text, "x")
	if !two {
		high = wide
	}
	w, errW := strconv.Atoi(wide)
	h, errH := strconv.Atoi(high)
	if errW != nil || errH != nil || w < 1 || h < 1 {
		return imagebags.Size{}, console.Usagef("--resize %s: give a number of pixels, or width x height such as 320x240",
			text)
	}
	s := imagebags.Size{Width: w, Height: h}
	return s, diag.Invalid(s.Check())
}

func (o *bagsOptions) checkCandidates() error {
	switch {
	case o.Unlabeled && (o.Candidates != "" || o.flags.Changed("r")):
		return console.Usagef("--unlabelled excludes --candidates and --r: the bags have no candidates")
	case o.Candidates != "" && o.flags.Changed("r"):
		return console.Usagef("--candidates and --r exclude each other: give only one of them")
	case o.Candidates == "" && o.flags.Changed("outside"):
		return console.Usagef("--outside needs --candidates")
	}
	return nil
}

// candidates adds the candidates of --r or --candidates to the true classes.
func (o *bagsOptions) candidates(set *data.Dataset, table *generate.LabelTable) (*data.Dataset, error) {
	if table != nil {
		return o.attach(set, table, o.Outside)
	}
	if o.Unlabeled {
		return set, nil
	}
	if set.Classes == 0 {
		return nil, errors.New("the images have no class: put them into one folder per class, give --candidates, or give " +
			"--unlabelled to make bags for miplc predict")
	}
	return set, imagebags.AddFalseCandidates(set, o.R, o.Seed)
}

// attach replaces the candidate sets of the bags by those of a table, and reports the number of
// bags whose true label is not among them.
func (o *datasetOutput) attach(set *data.Dataset, table *generate.LabelTable, outside string) (*data.Dataset, error) {
	out, wrong, err := generate.AttachCandidates(set, table, generate.Outside(outside))
	if err != nil {
		return nil, err
	}
	done := map[generate.Outside]string{generate.OutsideAdd: "added to the candidates",
		generate.OutsideDrop: "left out", generate.OutsideForget: "unknown now"}
	if wrong > 0 {
		o.Console.Notef("%d of %s had their true label outside the candidates: %s", wrong, diag.Count(set.Bags(), "bag"),
			done[generate.Outside(outside)])
	}
	return out, nil
}
