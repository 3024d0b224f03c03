AGENT_ARCH_CFLAGS = -mgeneral-regs-only -mfloat-abi=softfp
# Vector and floating point registers and the instructions on them.
AGENT_FORBIDDEN = \<[sdq]([0-9]|[12][0-9]|3[01])\>|^v[a-z]
