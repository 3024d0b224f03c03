# The agent: freestanding, position independent, embedded in memprof as an ELF file.
# The architecture's agent.mk sets AGENT_ARCH_CFLAGS and AGENT_FORBIDDEN (see agent/check.sh).  It can
# also set AGENT_C_CFLAGS, and replace AGENT_LDS, AGENT_UNWIND and AGENT_LINK.
AGENT_LDS = src/agent/agent.lds
AGENT_UNWIND = -fasynchronous-unwind-tables
AGENT_LINK = -static-pie
include src/arch/$(ARCH_FOLDER)/agent.mk
AGENT_CFLAGS = $(AGENT_CHECK:%=-DAGENT_CHECK_STACKS) -std=gnu11 -O2 -g $(PREFIX_MAP) $(WARN) -Isrc -ffreestanding -nostdlib -fPIE -fvisibility=hidden \
	$(AGENT_ARCH_CFLAGS) $(AGENT_C_CFLAGS) -fno-stack-protector -fno-jump-tables -fno-tree-loop-distribute-patterns \
	-fomit-frame-pointer -fno-strict-aliasing $(AGENT_UNWIND) \
	-fstack-usage -Wframe-larger-than=320
AGENT_OBJ = $(patsubst src/%,$(O)/%.o,$(basename $(wildcard src/arch/$(ARCH_FOLDER)/agent-*.[Sc] src/agent/*.c)))

$(O)/agent/%.o: src/agent/%.c
	@mkdir -p $(@D)
	$(CC) $(AGENT_CFLAGS) -MMD -MP -c -o $@ $<

$(O)/arch/$(ARCH_FOLDER)/agent-%.o: src/arch/$(ARCH_FOLDER)/agent-%.c
	@mkdir -p $(@D)
	$(CC) $(AGENT_CFLAGS) -MMD -MP -c -o $@ $<
$(O)/arch/$(ARCH_FOLDER)/agent-%.o: src/arch/$(ARCH_FOLDER)/agent-%.S
	@mkdir -p $(@D)
	$(CC) $(AGENT_ARCH_CFLAGS) $(PREFIX_MAP) -Isrc -MMD -MP -c -o $@ $<

$(O)/agent.elf: $(AGENT_OBJ) $(AGENT_LDS) src/agent/check.sh
	$(CC) $(AGENT_ARCH_CFLAGS) -nostdlib $(AGENT_LINK) -Wl,-T,$(AGENT_LDS) -Wl,--no-dynamic-linker -Wl,-z,norelro \
		-Wl,--build-id=none -Wl,-z,noexecstack -Wl,-z,max-page-size=4096 -Wl,--orphan-handling=place -o $@ $(AGENT_OBJ)
	CROSS=$(CROSS) FORBIDDEN='$(AGENT_FORBIDDEN)' sh src/agent/check.sh $@ $(O)/agent $(O)/arch/$(ARCH_FOLDER)

$(O)/agent_blob.o: src/inject/agent_blob.S $(O)/agent.elf
	$(CC) -DAGENT_ELF='"$(O)/agent.elf"' -c -o $@ $<

agent: $(O)/agent.elf
