AGENT_ARCH_CFLAGS = -mgeneral-regs-only -mno-outline-atomics -mbranch-protection=bti
# Vector and floating point registers; signed return addresses, which stacks would have to be
# stripped of.
AGENT_FORBIDDEN = \<[bhsdqv]([0-9]|[12][0-9]|3[01])\>|\<(pac|aut)i
