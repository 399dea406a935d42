"""Runs PL-AGGD on the authors' Lost data by an independent method and prints
the loss and the test accuracy of every round, the numbers of TestLost. All
quadratic programs go to the solver OSQP. Needs numpy, scipy and osqp:

    python3 lost.py Lost.mat
"""
import sys

import numpy as np
import osqp
import scipy.io
import scipy.sparse as sp

K, GAMMA, LAMBDA, MU, ROUNDS = 10, 0.05, 1, 1, 10


def solve(H, c, A, lower, upper, accuracy):
    problem = osqp.OSQP()
    problem.setup(sp.triu(H).tocsc(), c, A.tocsc(), lower, upper, verbose=False, eps_abs=accuracy, eps_rel=accuracy,
                  max_iter=200000, polishing=True)
    return problem.solve().x


def graph(U, P, neighbours, lam, mu):
    n = len(U)
    S = sp.lil_matrix((n, n))
    for i, N in enumerate(neighbours):
        D, Y = U[i] - U[N], P[i] - P[N]
        w = solve(sp.csc_matrix(2 * (lam * D @ D.T + mu * Y @ Y.T)), np.zeros(K), sp.vstack([np.ones((1, K)), sp.eye(K)]),
                  np.r_[1, np.zeros(K)], np.ones(K + 1), 1e-9)
        S[i, N] = np.maximum(w, 0) / np.maximum(w, 0).sum()
    return S.tocsc()


def confidences(S, candidates, target, pull):
    n, q = candidates.shape
    I = sp.eye(n) - S
    free = np.flatnonzero(candidates.ravel())
    H = sp.kron(2 * (I.T @ I + pull * sp.eye(n)), sp.eye(q)).tocsc()[free][:, free]
    A = sp.vstack([sp.kron(sp.eye(n), np.ones((1, q))).tocsc()[:, free], sp.eye(len(free))])
    p = solve(H, -2 * pull * target.ravel()[free], A, np.r_[np.ones(n), np.zeros(len(free))], np.ones(n + len(free)), 1e-8)
    P = np.zeros(n * q)
    P[free] = np.clip(p, 0, 1)
    return P.reshape(n, q)


def main(path):
    m = scipy.io.loadmat(path)
    X, Z = (np.float32(m[name]).astype(float) for name in ("train_data", "test_data"))
    candidates, truth = m["train_p_target"].astype(float), m["test_target"].argmax(1)
    n, q = candidates.shape
    U = X / np.linalg.norm(X, axis=1, keepdims=True)
    distance = np.linalg.norm(U[:, None] - U[None], axis=2)
    np.fill_diagonal(distance, np.inf)
    neighbours = np.argsort(distance, 1, kind="stable")[:, :K]
    width = np.linalg.norm(X[:, None] - X[None], axis=2).sum() / (n * (n - 1))

    def kernel(A):
        return np.exp(-((A[:, None] - X[None]) ** 2).sum(2) / (2 * width ** 2))

    own, test = kernel(X), kernel(Z)

    def regression(P):
        A = np.block([[own + GAMMA * np.eye(n), np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
        a = np.linalg.solve(A, np.vstack([P, np.zeros((1, q))]))
        return a[:n], a[n]

    P = confidences(graph(U, np.zeros((n, q)), neighbours, 1, 0), candidates, np.zeros((n, q)), 0)
    a, b = regression(P)
    for i in range(ROUNDS):
        S = graph(U, P, neighbours, LAMBDA, MU)
        P = confidences(S, candidates, own @ a + b, 1 / MU)
        a, b = regression(P)
        F = own @ a + b
        loss = ((F - P) ** 2).sum() + GAMMA * np.trace(a.T @ own @ a) + MU * ((P - S @ P) ** 2).sum() + LAMBDA * ((U - S @ U) ** 2).sum()
        right = ((test @ a + b).argmax(1) == truth).sum()
        print(f"round {i + 1}: loss {loss:.10g}, {right} of {len(truth)} right", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
