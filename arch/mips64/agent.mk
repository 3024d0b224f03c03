AGENT_ARCH_CFLAGS = -mabi=64 -msoft-float
# Floating point and vector registers.
AGENT_FORBIDDEN = \$$[fw][0-9]
