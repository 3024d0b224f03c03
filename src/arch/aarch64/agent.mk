AGENT_ARCH_CFLAGS = -mgeneral-regs-only -mno-outline-atomics -mbranch-protection=bti
# Vector and floating point registers; instructions that sign return addresses, since an unwinder
# would have to remove the signatures.
AGENT_FORBIDDEN = \<[bhsdqv]([0-9]|[12][0-9]|3[01])\>|\<(pac|aut)i
