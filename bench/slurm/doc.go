// Package slurm runs experiments on a Slurm of four nodes on one machine. Its tests interrupt
// and kill tasks as clusters do.
package slurm
