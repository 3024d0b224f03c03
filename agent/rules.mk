# The agent: freestanding, position independent, embedded in the program as a file.
AGENT_CFLAGS = $(AGENT_CHECK:%=-DAGENT_CHECK_STACKS) -std=gnu11 -O2 -g $(WARN) -I. -ffreestanding -nostdlib -fPIE -fvisibility=hidden \
	-mgeneral-regs-only -fno-stack-protector -fno-jump-tables -fno-tree-loop-distribute-patterns \
	-fomit-frame-pointer -fno-strict-aliasing -fasynchronous-unwind-tables -fcf-protection=branch -fno-plt \
	-fstack-usage -Wframe-larger-than=320
AGENT_OBJ = $(O)/arch/x86_64/agent-entry.o $(patsubst %.c,$(O)/%.o,$(wildcard agent/*.c))

$(O)/agent/%.o: agent/%.c
	@mkdir -p $(@D)
	$(CC) $(AGENT_CFLAGS) -MMD -MP -c -o $@ $<

$(O)/arch/x86_64/agent-entry.o: arch/x86_64/agent-entry.S
	@mkdir -p $(@D)
	$(CC) -c -o $@ $<

$(O)/agent.elf: $(AGENT_OBJ) agent/agent.lds agent/check.sh
	$(CC) -nostdlib -static-pie -Wl,-T,agent/agent.lds -Wl,--no-dynamic-linker -Wl,-z,norelro \
		-Wl,--build-id=none -Wl,-z,noexecstack -Wl,--orphan-handling=place -o $@ $(AGENT_OBJ)
	sh agent/check.sh $@ $(O)/agent

$(O)/agent_blob.o: inject/agent_blob.S $(O)/agent.elf
	$(CC) -DAGENT_ELF='"$(O)/agent.elf"' -c -o $@ $<

agent: $(O)/agent.elf
