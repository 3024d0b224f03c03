# Position independent code as in the ABI needs a table of addresses.  Instead agent-relative.h and
# AG_OWN() make the code position independent.
AGENT_ARCH_CFLAGS = -mabi=64 -march=mips64r2 -msoft-float -fno-pic -mno-abicalls -G0
AGENT_C_CFLAGS = -include arch/mips64/agent-relative.h
AGENT_LINK = -static -no-pie
# Floating point and vector registers; jumps that are not relative; the global pointer.  The text also
# has addresses (multiples of 4 below 128 KiB), which objdump disassembles as instructions.  None of
# them becomes one of those that the last expression matches.
AGENT_FORBIDDEN = \$$[fw][0-9]|^(jal|j)\b|^d?addi?u\b.*\bgp\b
