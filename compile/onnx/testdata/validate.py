"""Checks ONNX files with the reference checker and strict shape inference.

    go test ./compile/onnx -keep-models DIR
    python compile/onnx/testdata/validate.py DIR

needs the Python package onnx. The exit status is 1 if a file fails.
"""
import pathlib
import sys

import onnx


def problem(path):
    try:
        model = onnx.load(path)
        onnx.checker.check_model(model, full_check=True)
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    except Exception as error:  # every failure is reported with its file
        return f"{model.graph.name if 'model' in locals() else ''}: {error}"
    return None


def main():
    files = sorted(f for arg in sys.argv[1:] for f in pathlib.Path(arg).rglob("*.onnx"))
    failed = [(f, p) for f in files if (p := problem(f))]
    for f, p in failed:
        print(f"{f}: {p}")
    print(f"{len(files)} files, {len(failed)} failed")
    return 1 if failed or not files else 0


if __name__ == "__main__":
    sys.exit(main())
