AGENT_ARCH_CFLAGS = -mgeneral-regs-only -fcf-protection=branch -fno-plt
# Vector and floating point registers; thread-local data beyond the thread pointer.
AGENT_FORBIDDEN = %[xyz]mm|%mm[0-7]|%st|%gs:|%fs:([^0]|0x0*[1-9a-f])
