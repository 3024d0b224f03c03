# memprof.  `make demo` and `make check` are all a newcomer needs; see README.md.
#
# One static library per folder; a program or test of a folder links that folder and the ones to
# its right (the arrows of doc/tour.md).  New .c files are picked up by themselves.

O ?= build
CC ?= gcc
OPT ?= -O2 -g
WARN = -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Werror
CFLAGS += -std=gnu11 $(OPT) $(WARN) -I. -D_GNU_SOURCE -fno-omit-frame-pointer $(SAN)
LDLIBS = -ldw -lelf -lcapstone -lzstd -lz -lyajl -liberty -lpthread
VERSION := 0.1

FOLDERS = lib formats arch attach unwind inject record report leaks cmd
DEPS_lib =
DEPS_formats = lib
DEPS_arch = formats lib
DEPS_attach = arch formats lib
DEPS_unwind = arch formats lib
DEPS_inject = unwind attach arch formats lib
DEPS_record = inject unwind attach arch formats lib
DEPS_report = unwind arch formats lib
DEPS_leaks = inject unwind attach arch formats lib
DEPS_cmd = report record leaks inject unwind attach arch formats lib

.PHONY: all agent unit clean
all: $(O)/memprof

define folder
SRC_$(1) := $$(wildcard $(1)/*.c $(1)/*/*.c)
SRC_$(1) := $$(filter-out arch/%/agent-%.c,$$(SRC_$(1)))
OBJ_$(1) := $$(SRC_$(1):%.c=$(O)/%.o)
$(O)/$(1).a: $$(OBJ_$(1))
	@rm -f $$@
	@ar rcs $$@ $$^
UNIT_$(1) := $$(patsubst tests/unit/$(1)/%.c,$(O)/tests/unit/$(1)/%,$$(wildcard tests/unit/$(1)/*.c))
$$(UNIT_$(1)): $(O)/%: %.c $(O)/$(1).a $$(DEPS_$(1):%=$(O)/%.a)
	@mkdir -p $$(@D)
	$$(CC) $$(CFLAGS) -MMD -MP -o $$@ $$< -Wl,--start-group $(O)/$(1).a $$(DEPS_$(1):%=$(O)/%.a) -Wl,--end-group -lcmocka $$(LDLIBS)
UNIT += $$(UNIT_$(1))
unit-$(1): $$(UNIT_$(1))
endef
$(foreach f,$(FOLDERS),$(eval $(call folder,$(f))))

$(O)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -DMEMPROF_VERSION='"$(VERSION)"' -MMD -MP -c -o $@ $<

-include $(wildcard $(O)/*/*.d $(O)/*/*/*.d $(O)/*/*/*/*.d)

unit: $(UNIT)

include agent/rules.mk

$(O)/memprof: $(O)/cmd.a $(DEPS_cmd:%=$(O)/%.a) $(O)/agent_blob.o
	$(CC) $(CFLAGS) -o $@ -Wl,--start-group $^ -Wl,--end-group $(LDLIBS)

clean:
	rm -rf $(O)
