# Not position independent in the ABI's way, which needs a table of addresses: agent-relative.h and
# AG_OWN() make it so.
AGENT_ARCH_CFLAGS = -mabi=64 -march=mips64r2 -msoft-float -fno-pic -mno-abicalls -G0
AGENT_C_CFLAGS = -include arch/mips64/agent-relative.h
AGENT_LINK = -static -no-pie
# Floating point and vector registers; jumps that are not relative; the global pointer, by what no
# address in the text (a multiple of 4 below 128 KiB) is disassembled to.
AGENT_FORBIDDEN = \$$[fw][0-9]|^(jal|j)\b|^d?addi?u\b.*\bgp\b
