AGENT_ARCH_CFLAGS = -marm -mgeneral-regs-only -mfloat-abi=softfp
# .debug_frame; .ARM.exidx describes no prologue and would need a library.
AGENT_UNWIND = -fno-asynchronous-unwind-tables -fno-unwind-tables
# Vector and floating point registers and the instructions on them.
AGENT_FORBIDDEN = \<[sdq]([0-9]|[12][0-9]|3[01])\>|^v[a-z]
