AGENT_ARCH_CFLAGS = -mgeneral-regs-only -mno-outline-atomics -mbranch-protection=standard
# Vector and floating point registers.
AGENT_FORBIDDEN = \<[bhsdqv]([0-9]|[12][0-9]|3[01])\>
