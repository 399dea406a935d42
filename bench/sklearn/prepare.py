# Writes the bags of docs/results.md, "Beside scikit-learn", as CSV files, and the splits that all programs use.
# Usage: python prepare.py DATA, a folder as in docs/paper-data.md, "The instances".
# For the tissue tiles, crc.csv is the output of miplc data bags --generator kmeansseg; its split is that of the
# source, whose part begins the name of a tile.
import csv, gzip, os, sys
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit

source = sys.argv[1]


def write_splits(name, bags, strata=None):
    divide = (StratifiedShuffleSplit if strata else ShuffleSplit)(5, test_size=0.3, random_state=1)
    with open(f"{name}-splits.csv", "w") as f:
        print("split,bag,part", file=f)
        for split, parts in enumerate(divide.split(bags, strata), 1):
            for part, members in zip(("train", "test"), parts):
                for i in sorted(members):
                    print(f"{split},{bags[i]},{part}", file=f)


def rows(path):
    with gzip.open(path, "rt") as f:
        yield from csv.reader(f)


# Recordings of ten seconds, with all species that have a labelled segment.
species = {}
for row in csv.DictReader(open(f"{source}/mil/birdsong/bags.csv")):
    columns = [k for k in row if k.startswith("labelled_") and k != "labelled_instances"]
    species[row["bag"]] = [k.removeprefix("labelled_") for k in columns if row[k] == "1"]
with open("birds.csv", "w") as f:
    for i, row in enumerate(rows(f"{source}/mil/birdsong/instances.csv.gz")):
        print(row[0] if i else "bag", " ".join(species[row[0]]) if i else "label", *row[2:], sep=",", file=f)
write_splits("birds", list(species))

# Photos of six objects.
kinds = {}
with open("sival.csv", "w") as f:
    for i, row in enumerate(rows(f"{source}/mil/sival6/instances.csv.gz")):
        if i:
            kinds[row[0]] = row[1]
        print(row[0], row[1] if i else "label", *row[2:], sep=",", file=f)
write_splits("sival", list(kinds), list(kinds.values()))

if os.path.exists("crc.csv"):
    tiles = list(dict.fromkeys(row["bag"] for row in csv.DictReader(open("crc.csv"))))
    with open("crc-splits.csv", "w") as f:
        print("split,bag,part", file=f)
        for tile in tiles:
            print(1, tile, "test" if "/test-" in tile else "train", sep=",", file=f)
