#!/usr/bin/env python3
"""Writes gp.json: a small MIPLGP computed by dense NumPy and SciPy.

Nothing here knows closed forms of gradients: likelihoods are densities of
scipy.stats, gradients are central differences. Usage: python gp.py > gp.json
"""
import json
import sys

import numpy as np
from scipy.spatial.distance import cdist
from scipy.stats import multivariate_normal

EPS = 1e-4
rng = np.random.default_rng(7)
sizes = [4, 3, 5, 4, 6, 2]
dim, k = 3, 3
bag_of = np.repeat(np.arange(len(sizes)), sizes)
candidates = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1], [1, 0, 0]])
n = len(bag_of)
x = np.float32(rng.normal(size=(n, dim)) + 0.8 * candidates[bag_of] * rng.random((n, 1))).astype(float)
x_new = np.float32(rng.normal(size=(5, dim)) + 0.3).astype(float)
allowed = np.hstack([candidates[bag_of], np.ones((n, 1))]) > 0  # [n, k+1]
chosen = [0, 3, 5, 8, 11, 14, 17, 20, 23]


def softplus(v):
    return np.log1p(np.exp(v))


def kernel(a, b, scale, length):
    r = np.sqrt(5) * cdist(a, b) / length
    return scale * (1 + r + r**2 / 3) * np.exp(-r)


def renew(f):
    """f [k+1, n] -> y, noise [k+1, n]"""
    e = np.where(allowed.T, np.exp(f), 0)
    alpha = EPS + e / e.sum(0)
    noise = np.log(1 / alpha + 1)
    return np.log(alpha) - noise / 2, noise


def parameters(raw):
    return softplus(raw[0]), softplus(raw[1]), raw[2:2 + k + 1], 1e-4 + softplus(raw[3 + k:])


def loss(raw, y, noise):
    scale, length, mean, extra = parameters(raw)
    gram = kernel(x, x, scale, length)
    total = sum(multivariate_normal.logpdf(y[c], np.full(n, mean[c]), gram + np.diag(noise[c] + extra[c]))
                for c in range(k + 1))
    return -total / n / (k + 1)


def bound(raw, y, noise):
    scale, length, mean, extra = parameters(raw)
    u = kernel(x[chosen], x[chosen], scale, length) + 1e-5 * scale * np.eye(len(chosen))
    f = kernel(x, x[chosen], scale, length)
    q = f @ np.linalg.solve(u, f.T)
    total = 0
    for c in range(k + 1):
        d = noise[c] + extra[c]
        total += multivariate_normal.logpdf(y[c], np.full(n, mean[c]), q + np.diag(d))
        total -= 0.5 * np.sum((scale - np.diag(q)) / d)
    return -total / n / (k + 1)


def gradient(fun, raw, *args):
    g = np.zeros_like(raw)
    for i in range(len(raw)):
        h = np.zeros_like(raw)
        h[i] = 1e-5
        g[i] = (8 * (fun(raw + h, *args) - fun(raw - h, *args)) - fun(raw + 2 * h, *args) + fun(raw - 2 * h, *args)) / (12 * h[i])
    return g


def posterior(raw, y, noise, at, points=None):
    """Means and variances [k+1, m] of the latent functions, densely."""
    scale, length, mean, extra = parameters(raw)
    if points is None:
        gram, cross = kernel(x, x, scale, length), kernel(at, x, scale, length)
    else:
        u = kernel(points, points, scale, length) + 1e-5 * scale * np.eye(len(points))
        f, g = kernel(x, points, scale, length), kernel(at, points, scale, length)
        gram, cross = f @ np.linalg.solve(u, f.T), g @ np.linalg.solve(u, f.T)
    means, variances = [], []
    for c in range(k + 1):
        a = gram + np.diag(noise[c] + extra[c])
        means.append(mean[c] + cross @ np.linalg.solve(a, y[c] - mean[c]))
        variances.append(scale - np.sum(cross * np.linalg.solve(a, cross.T).T, axis=1))
    return np.array(means), np.array(variances)


def fit(confidences, steps, rate):
    raw = np.zeros(2 + 2 * (k + 1))
    m, v = np.zeros_like(raw), np.zeros_like(raw)
    first = y, noise = renew(np.zeros((k + 1, n)))
    losses = []
    for t in range(steps):
        losses.append(loss(raw, y, noise))
        g = gradient(loss, raw, y, noise)
        if confidences == "posterior":
            y_new, noise_new = renew(posterior(raw, y, noise, x)[0])
        else:
            y_new, noise_new = renew(np.repeat(raw[2:3 + k][:, None], n, 1))[0], noise
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g * g
        lr = rate * (1 + np.cos(np.pi * t / steps)) / 2
        raw = raw - lr * m / (1 - 0.9 ** (t + 1)) / (np.sqrt(v / (1 - 0.999 ** (t + 1))) + 1e-8)
        y, noise = y_new, noise_new
    losses.append(loss(raw, y, noise))
    y, noise = first if confidences == "prior" else (y, noise)
    mean, variance = posterior(raw, y, noise, x_new)
    return dict(losses=losses, raw=raw, mean=mean, variance=variance)


def main():
    raw = np.array([0.4, 0.9, -1.0, -0.5, -2.0, 0.3, 0.1, -0.7, 0.5, -1.2])
    y, noise = renew(rng.normal(size=(k + 1, n)))
    mean, variance = posterior(raw, y, noise, x_new)
    inducing_mean, _ = posterior(raw, y, noise, x_new, x[chosen])
    # The variance of the variational posterior keeps what the points do not explain.
    scale, length = parameters(raw)[:2]
    u = kernel(x[chosen], x[chosen], scale, length) + 1e-5 * scale * np.eye(len(chosen))
    g = kernel(x_new, x[chosen], scale, length)
    explained = np.sum(g * np.linalg.solve(u, g.T).T, axis=1)
    inducing_variance = []
    for c in range(k + 1):
        f = kernel(x, x[chosen], scale, length)
        s = u + f.T @ np.diag(1 / (noise[c] + parameters(raw)[3][c])) @ f
        inducing_variance.append(scale - explained + np.sum(g * np.linalg.solve(s, g.T).T, axis=1))
    out = dict(
        x=x, x_new=x_new, bag_of=bag_of, candidates=candidates, chosen=chosen,
        raw=raw, y=y, noise=noise,
        loss=loss(raw, y, noise), gradient=gradient(loss, raw, y, noise),
        fitted=posterior(raw, y, noise, x)[0], mean=mean, variance=variance,
        bound=bound(raw, y, noise), bound_gradient=gradient(bound, raw, y, noise),
        inducing_mean=inducing_mean, inducing_variance=np.array(inducing_variance),
        posterior=fit("posterior", 6, 0.1), prior=fit("prior", 6, 0.1),
    )
    json.dump(out, sys.stdout, default=lambda a: a.tolist(), indent=None, separators=(",", ":"))
    print()


main()
