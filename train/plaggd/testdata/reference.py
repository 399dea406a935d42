"""Writes reference.json: PL-AGGD on small problems by an independent method.

Graph weights come from trying every support of the weights and checking the
conditions of Karush, Kuhn and Tucker; confidences from SciPy's SLSQP, refined on
its support by the linear system of those conditions; the regression from its
normal equations with the bias as an unknown. Needs numpy and scipy:

    python3 reference.py
"""
import itertools
import json
import os

import numpy as np
from scipy.optimize import minimize


def simplex_minimum(G):
    """The minimum of w'Gw over the simplex, by enumeration of supports."""
    n, best = len(G), None
    for size in range(1, n + 1):
        for support in itertools.combinations(range(n), size):
            s = list(support)
            A = np.block([[G[np.ix_(s, s)], -np.ones((size, 1))], [np.ones((1, size)), np.zeros((1, 1))]])
            sol = np.linalg.lstsq(A, np.r_[np.zeros(size), 1.0], rcond=None)[0]
            w = np.zeros(n)
            w[s] = sol[:size]
            if w.min() < -1e-12 or abs(w.sum() - 1) > 1e-9:
                continue
            if best is None or w @ G @ w < best @ G @ best - 1e-15:
                best = w
    g = G @ best
    assert g.min() > best @ g - 1e-10 * max(1, np.abs(G).max())
    return best


def graph_weights(X, P, neighbours, lam, mu):
    S = np.zeros((len(X), len(X)))
    for i, N in enumerate(neighbours):
        D, Y = X[i] - X[N], P[i] - P[N]
        S[i, N] = simplex_minimum(lam * D @ D.T + mu * Y @ Y.T)
    return S


def confidences(S, cand, target, pull):
    """The minimum of |P - SP|^2 + pull |P - target|^2 over feasible P."""
    m, q = cand.shape
    T = (np.eye(m) - S).T @ (np.eye(m) - S) + pull * np.eye(m)
    free = np.flatnonzero(cand.ravel())
    H = np.kron(T, np.eye(q))[np.ix_(free, free)]
    c = pull * target.ravel()[free]
    A = np.kron(np.eye(m), np.ones((1, q)))[:, free]
    start = (cand / cand.sum(1, keepdims=True)).ravel()[free]
    r = minimize(lambda p: p @ H @ p - 2 * c @ p, start, jac=lambda p: 2 * H @ p - 2 * c, method="SLSQP",
                 bounds=[(0, 1)] * len(free), constraints={"type": "eq", "fun": lambda p: A @ p - 1, "jac": lambda p: A},
                 options={"maxiter": 5000, "ftol": 1e-16})
    p = r.x
    on = np.flatnonzero(p > 1e-6)
    K = np.block([[H[np.ix_(on, on)], A[:, on].T], [A[:, on], np.zeros((m, m))]])
    sol = np.linalg.lstsq(K, np.r_[c[on], np.ones(m)], rcond=None)[0]
    p = np.zeros(len(free))
    p[on] = sol[:len(on)]
    slack = H @ p - c + A.T @ sol[len(on):]
    assert p.min() > -1e-9 and slack.min() > -1e-8, (p.min(), slack.min())
    null = K.shape[0] - np.linalg.matrix_rank(K, tol=1e-9)
    assert null == 0, "the minimum is not unique: take another seed"
    P = np.zeros(m * q)
    P[free] = p
    return P.reshape(m, q)


def regression(K, P, gamma):
    m, q = P.shape
    A = np.block([[K + gamma * np.eye(m), np.ones((m, 1))], [np.ones((1, m)), np.zeros((1, 1))]])
    sol = np.linalg.solve(A, np.vstack([P, np.zeros((1, q))]))
    return sol[:m], sol[m]


def kernel(A, B, width):
    return np.exp(-((A[:, None] - B[None]) ** 2).sum(2) / (2 * width ** 2))


def case(seed, vector, m, d, q, k, lam, mu, gamma, iterations):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(q, d)) * 2
    truth = rng.integers(q, size=m + 5)
    bags = [np.float32(centres[c] + rng.normal(size=(rng.integers(1, 5), d))).astype(float) for c in truth]
    pool = (lambda b: b.mean(0)) if vector == "mean" else (lambda b: np.r_[b.max(0), b.min(0)])
    V = np.array([pool(b) for b in bags])
    X, Z = V[:m], V[m:]
    cand = np.zeros((m, q))
    for i in range(m):
        cand[i, truth[i]] = 1
        if i % 4:
            cand[i, rng.integers(q)] = 1
    U = X / np.linalg.norm(X, axis=1, keepdims=True)
    dist = np.linalg.norm(U[:, None] - U[None], axis=2)
    np.fill_diagonal(dist, np.inf)
    neighbours = np.argsort(dist, axis=1, kind="stable")[:, :k]
    width = np.mean([np.linalg.norm(X[i] - X[j]) for i in range(m) for j in range(i)])
    K = kernel(X, X, width)
    S = graph_weights(U, np.zeros((m, q)), neighbours, 1, 0)
    P = confidences(S, cand, np.zeros((m, q)), 0)
    first = {"weights": S.tolist(), "confidences": P.tolist()}
    a, b = regression(K, P, gamma)
    for _ in range(iterations):
        S = graph_weights(U, P, neighbours, lam, mu)
        P = confidences(S, cand, K @ a + b, 1 / mu)
        a, b = regression(K, P, gamma)
    F = K @ a + b
    loss = ((F - P) ** 2).sum() + gamma * np.trace(a.T @ K @ a) + mu * ((P - S @ P) ** 2).sum() + lam * ((U - S @ U) ** 2).sum()
    f = kernel(Z, X, width) @ a + b
    out = np.maximum(f, 0)
    return {"vector": vector, "neighbours": k, "lambda": lam, "mu": mu, "gamma": gamma, "iterations": iterations,
            "bags": [b.tolist() for b in bags], "train": m, "candidates": cand.astype(int).tolist(), "width": width,
            "start": first, "weights": S.tolist(), "confidences": P.tolist(), "loss": loss,
            "probabilities": (out / out.sum(1, keepdims=True)).tolist()}


if __name__ == "__main__":
    cases = [
        case(1, "mean", 16, 3, 4, 4, 1, 1, 0.05, 3),
        case(2, "maxmin", 20, 2, 3, 5, 0.5, 2, 0.1, 4),
        case(3, "mean", 12, 6, 5, 3, 2, 0.3, 0.5, 0),
    ]
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "reference.json")
    with open(path, "w") as f:
        json.dump(cases, f)
        f.write("\n")
