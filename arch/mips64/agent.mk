# Not position independent in the ABI's way, which needs a table of addresses: agent-relative.h and
# AG_OWN() make it so.
AGENT_ARCH_CFLAGS = -mabi=64 -march=mips64r2 -msoft-float -fno-pic -mno-abicalls -G0
AGENT_C_CFLAGS = -include arch/mips64/agent-relative.h
AGENT_LINK = -static -no-pie
# Floating point and vector registers; jumps that are not relative; the global pointer.
AGENT_FORBIDDEN = \$$[fw][0-9]|^(jal|j)\b|\bgp\b,.*,
