"""Makes the reference of sift_test.go: dense SIFT by OpenCV.

    pip install opencv-python-headless numpy
    python opencv_sift.py

It draws sift.png, a grey image of smooth waves, edges and a flat corner, and
writes sift.csv: one row a patch with x and y of its centre and 128 numbers of
OpenCV's descriptor (whole numbers, length about 512). Patches of 64 pixels every
28 pixels, bins of 16 pixels: a keypoint of size 2 * 16 / 3, since OpenCV's bin is
3 times half the size. OpenCV runs over rows, columns and directions in the same
order as miplc.
"""
import csv
import cv2
import numpy as np

PATCH, STEP, SIGMA, SIDE = 64, 28, 1.6, 120


def picture():
    y, x = np.mgrid[0:SIDE, 0:SIDE].astype(float)
    v = 128 + 50 * np.sin(x / 7 + y / 19) + 40 * np.cos(y / 5 - x / 31)
    v += np.where(np.hypot(x - 70, y - 40) < 22, 45, 0)
    v += np.where(x + 2 * y > 260, -60, 0)
    v[-30:, :30] = 200
    return np.clip(np.round(v), 0, 255).astype(np.uint8)


gray = picture()
cv2.imwrite("sift.png", gray, [cv2.IMWRITE_PNG_COMPRESSION, 9])
corners = range(0, SIDE - PATCH + 1, STEP)
keypoints = [cv2.KeyPoint(x + PATCH / 2, y + PATCH / 2, 2 * (PATCH / 4) / 3, 0.0) for y in corners for x in corners]
kept, descriptors = cv2.SIFT_create(sigma=SIGMA).compute(gray, keypoints)
assert len(kept) == len(keypoints)
with open("sift.csv", "w", newline="") as f:
    out = csv.writer(f, lineterminator="\n")
    for k, d in zip(kept, descriptors):
        out.writerow([int(k.pt[0]), int(k.pt[1]), *(int(v) for v in d)])
print("OpenCV", cv2.__version__, len(kept), "patches")
