# memprof.  `make demo` and `make check` are all a newcomer needs; `make help` lists the others.
#
# Each folder is built as one static library.  A program or test of a folder links the folder's
# library and those in DEPS_folder (the arrows of doc/tour.md).  New .c files are found by wildcards.

# make ARCH=aarch64|arm|mips64|mips64be builds for that architecture with a cross compiler, into
# build/ARCH.
HOST_ARCH := $(patsubst armv%,arm,$(shell uname -m))
ARCH ?= $(HOST_ARCH)
include scripts/cross.mk
O ?= build
# A job for each processor, and one that waits for the disk or the network, unless make was called with
# -j or by make.
ifeq ($(MAKELEVEL)$(filter -j%,$(MAKEFLAGS)),0)
MAKEFLAGS += -j$(shell expr $$(nproc) + 1)
endif
CC ?= gcc
OPT ?= -O2 -g
WARN = -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Werror
CFLAGS += -std=gnu11 $(OPT) $(WARN) -Isrc -I$(O) -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -D_TIME_BITS=64 -fno-omit-frame-pointer $(SAN)
# The objects are also those of the shared library.
CFLAGS += -fPIC -fvisibility=hidden
# The same bytes wherever the sources are.
CFLAGS += $(PREFIX_MAP)
PREFIX_MAP = -ffile-prefix-map=$(CURDIR)=.
LDFLAGS += -Wl,-z,relro,-z,now
LIBRARY_LDLIBS = -ldw -lelf -lcapstone -lzstd -lz -lyajl -lpcre2-8 -lcap-ng -lnettle -liberty -lm -lpthread
LDLIBS = $(MICROHTTPD) -lncursesw -ltinfo -lprotobuf-c $(LIBRARY_LDLIBS)
# The archive, if there is one: the shared library loads GnuTLS and what that needs, which would make
# every command start later.
MICROHTTPD_A = $(filter /%,$(shell $(CC) -print-file-name=libmicrohttpd.a))
MICROHTTPD = $(or $(MICROHTTPD_A),-lmicrohttpd)
VERSION := 0.2

FOLDERS = lib stream formats arch attach unwind inject record snapshot heaps leaks model export control join api top push fleet server cmd
DEPS_lib =
DEPS_stream = lib
DEPS_formats = lib
DEPS_arch = formats lib
DEPS_attach = arch formats lib
DEPS_unwind = arch formats lib
DEPS_inject = unwind attach arch formats lib
DEPS_record = inject unwind attach arch formats lib
DEPS_snapshot = unwind attach arch formats lib
DEPS_heaps = snapshot inject unwind attach arch formats lib
DEPS_leaks = heaps snapshot inject unwind attach arch formats lib
DEPS_model = unwind arch formats lib
DEPS_export = model unwind arch formats lib
DEPS_control = model record inject unwind attach arch formats stream lib
DEPS_join = control leaks heaps snapshot model record inject unwind attach arch formats stream lib
DEPS_api = join control leaks heaps snapshot model record inject unwind attach arch formats stream lib
DEPS_top = control export model record inject unwind attach arch formats stream lib
DEPS_push = top control export model record inject unwind attach arch formats stream lib
DEPS_fleet = push top control export model record inject unwind attach arch formats stream lib
DEPS_server = top control export model record inject unwind attach arch formats stream lib
DEPS_cmd = api join server fleet push top control export model leaks heaps snapshot record inject unwind attach arch formats stream lib

.PHONY: all help agent unit victims demo check check-fast check-flaky check-all check-stacks tsan bench \
	lint format clean
all: $(O)/memprof $(O)/memprof-replay libraries ## build memprof and libmemprof (the default)

help: ## this list
	@sed -n 's/^\([a-z][a-z._-]*\):.*## \(.*\)/make \1\t\2/p' $(filter-out %.d,$(MAKEFILE_LIST)) | \
		expand -t 24

define folder
SRC_$(1) := $$(wildcard src/$(1)/*.c src/$(1)/*/*.c)
SRC_$(1) := $$(foreach f,$$(SRC_$(1)),$$(if $$(filter agent-%,$$(notdir $$f)),,$$f))
OBJ_$(1) := $$(SRC_$(1):src/%.c=$(O)/%.o)
$(O)/$(1).a: $$(OBJ_$(1))
	@rm -f $$@
	@$(AR) rcs $$@ $$^
UNIT_$(1) := $$(patsubst tests/unit/$(1)/%.c,$(O)/tests/unit/$(1)/%,$$(wildcard tests/unit/$(1)/*.c))
$$(UNIT_$(1)): $(O)/%: %.c $(O)/$(1).a $$(DEPS_$(1):%=$(O)/%.a)
	@mkdir -p $$(@D)
	$$(CC) $$(CFLAGS) -MMD -MP -o $$@ $$< -Wl,--start-group $(O)/$(1).a $$(DEPS_$(1):%=$(O)/%.a) -Wl,--end-group -lcmocka $$(LDLIBS)
UNIT += $$(UNIT_$(1))
unit-$(1): $$(UNIT_$(1))
endef
$(foreach f,$(FOLDERS),$(eval $(call folder,$(f))))

# What prints the version is compiled again when it may have changed.
$(patsubst src/%.c,$(O)/%.o,$(shell grep -rl --include='*.c' MEMPROF_VERSION src)): Makefile

# All is compiled again when the flags have changed.
$(O)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(CC) $(CFLAGS)' | cmp -s - $@ || echo '$(CC) $(CFLAGS)' >$@

$(O)/%.o: src/%.c $(O)/flags
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -DMEMPROF_VERSION='"$(VERSION)"' -MMD -MP -c -o $@ $<

# protobuf-c generates the code for messages.  It becomes part of its folder's archive and is not linted.
$(O)/%.pb-c.c $(O)/%.pb-c.h: src/%.proto
	@mkdir -p $(@D)
	protoc-c --proto_path=src --c_out=$(O) $<
$(O)/%.pb-c.o: $(O)/%.pb-c.c $(O)/flags
	$(CC) $(CFLAGS) -c -o $@ $<
$(O)/export/pprof.o: $(O)/export/profile.pb-c.h
$(O)/export/otlp.o: $(O)/export/otlp.pb-c.h
$(O)/push/body.o: $(O)/push/push.pb-c.h
$(O)/export.a: $(O)/export/profile.pb-c.o $(O)/export/otlp.pb-c.o $(O)/export/svg_files.o $(O)/export/page_file.o
$(O)/push.a: $(O)/push/push.pb-c.o

# What the archive calls of GnuTLS: src/server/no_tls.c.
$(O)/server/gnutls_names.h: Makefile
	@mkdir -p $(@D)
	$(CROSS)nm -u $(or $(MICROHTTPD_A),/dev/null) 2>/dev/null | \
		sed -n 's/^ *U \(gnutls_.*\)/NO_TLS(\1)/p' | sort -u >$@
$(O)/server/no_tls.o: $(O)/server/gnutls_names.h

$(O)/server.a: $(O)/server/server_files.o
$(O)/server/server_files.o: src/server/server_files.S src/server/openapi.json
	@mkdir -p $(@D)
	$(CC) -c -o $@ $<

$(O)/export/svg_files.o: src/export/svg_files.S $(wildcard src/export/*.js src/export/*.css)
	@mkdir -p $(@D)
	$(CC) -c -o $@ $<

# The web page is the same for all architectures.  If it is empty, another try is made (scripts/build-page).
PAGE = build/web/index.html
PAGE_SOURCES = $(shell find web -name node_modules -prune -o -name tests -prune -o -type f -print)
$(PAGE): $(PAGE_SOURCES) src/server/openapi.json scripts/build-page $(if $(shell find $(PAGE) -size 0 2>/dev/null),FORCE)
	scripts/build-page $@
.PHONY: FORCE
$(O)/export/page_file.o: src/export/page_file.S $(PAGE)
	@mkdir -p $(@D)
	$(CC) -Wa,-I$(dir $(PAGE)) -c -o $@ $<

# Not build/*/*.d: another make may unpack packages there that have such names.
-include $(wildcard $(foreach d,agent tools $(FOLDERS),$(O)/$(d)/*.d $(O)/$(d)/*/*.d) $(O)/tests/unit/*/*.d)

# Includes code of the agent, which is compiled like this.
$(O)/tests/unit/record/thinning: private CFLAGS += -fno-strict-aliasing

unit: $(UNIT)

include src/agent/rules.mk
include src/api/rules.mk
include tests/fuzz/rules.mk
include tests/guest/rules.mk
include packaging/rules.mk

# ld -t -t lists what became a part of the program, for its SBOM.
$(O)/memprof $(O)/memprof.link &: $(O)/cmd.a $(DEPS_cmd:%=$(O)/%.a) $(O)/agent_blob.o
	$(CC) $(CFLAGS) $(LDFLAGS) -Wl,-t,-t -o $(O)/memprof -Wl,--start-group $^ -Wl,--end-group $(LDLIBS) >$(O)/memprof.link

# Links only libc, because it runs with each of the allocators that it compares.
$(O)/memprof-replay $(O)/memprof-replay.link &: $(O)/tools/memprof-replay.o
	$(CC) $(CFLAGS) $(LDFLAGS) -Wl,-t,-t -o $(O)/memprof-replay $< -lpthread >$(O)/memprof-replay.link

# ------------------------------------------------------------- what people and CI call

VICTIMS = $(patsubst tests/victims/%.c,$(O)/victims/%,$(filter-out %/late.c %/wrapper.c %/plugin.c %/unwalked.c %/glibs.c,$(wildcard tests/victims/*.c))) \
	$(patsubst tests/victims/%.cc,$(O)/victims/%,$(wildcard tests/victims/*.cc)) \
	$(O)/victims/libalpha.so $(O)/victims/libbeta.so $(O)/victims/liblate.so $(O)/victims/libwrapper.so $(O)/victims/libwrapper-header.so \
	$(O)/victims/unwalked-partition $(O)/victims/unwalked-google \
	$(O)/victims/verify-static $(O)/victims/verify-musl-static \
	$(O)/victims/truth-static $(O)/victims/truth-jemalloc-static $(O)/victims/truth-tcmalloc-static \
	$(O)/victims/truth-musl $(O)/victims/truth-musl-static $(UNKNOWN) \
	$(O)/victims/churn-musl-static $(HOST_VICTIMS) $(O)/victims/chaos \
	$(O)/victims/rseq-elsewhere $(O)/victims/blocks-static $(O)/victims/blocks-musl-static $(O)/victims/cases-lsan $(O)/victims/objects-stripped $(O)/victims/retained-stripped $(O)/victims/growing-stripped $(O)/victims/growing-other $(O)/victims/sandbox-static \
	$(O)/victims/containers-nodebug $(O)/victims/containers-debuglink $(O)/victims/shapes-stripped $(O)/victims/shapes_std-stripped $(O)/victims/shapes-debug
VICTIM_FLAGS = -O2 -g -Isrc -fomit-frame-pointer -Wall -Wextra -Werror -D_GNU_SOURCE
# Signed return addresses, and landing pads for indirect jumps, on processors that support them.
ifeq ($(ARCH),aarch64)
VICTIM_FLAGS += -mbranch-protection=standard
# Without the C library's start files, which have no landing pads.
FORCE_PADS = -nostartfiles -Wl,-z,force-bti
endif

$(O)/victims/shapes-debug: tests/victims/shapes.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(VICTIM_FLAGS) -o $@ $< -lpthread
# What is known of their types is known by shape.
$(O)/victims/shapes $(O)/victims/shapes_std: VICTIM_FLAGS += -g0
$(O)/victims/%: tests/victims/%.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(VICTIM_FLAGS) -o $@ $< -lpthread
$(O)/victims/%: tests/victims/%.cc
	@mkdir -p $(@D)
	$(CXX) -std=c++17 $(VICTIM_FLAGS) -o $@ $< -lpthread
$(O)/victims/liblate.so: tests/victims/late.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(VICTIM_FLAGS) -fPIC -shared -o $@ $<
$(O)/victims/libalpha.so $(O)/victims/libbeta.so: $(O)/victims/lib%.so: tests/victims/plugin.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(VICTIM_FLAGS) -DNAME=$*_make -Wl,--build-id -fPIC -shared -o $@ $<
$(O)/victims/rseq-elsewhere: tests/victims/rseq.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(VICTIM_FLAGS) -DELSEWHERE -o $@ $<
$(O)/victims/block $(O)/victims/scribbler: src/formats/session.h src/formats/record.h
$(O)/victims/libwrapper.so: tests/victims/wrapper.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(VICTIM_FLAGS) $(FORCE_PADS) -fno-builtin -fPIC -shared -o $@ $<
# Libraries with the names of these allocators, but with a data layout that memprof does not know.
UNKNOWN = $(patsubst %,$(O)/victims/lib%-unknown.so,jemalloc tcmalloc mimalloc)
$(UNKNOWN): $(O)/victims/libwrapper.so
	cp $< $@
$(O)/victims/libwrapper-header.so: tests/victims/wrapper.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(VICTIM_FLAGS) -fno-builtin -DHEADER=16 -fPIC -shared -o $@ $<
$(O)/victims/verify-static $(O)/victims/sandbox-static: $(O)/victims/%-static: tests/victims/%.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(VICTIM_FLAGS) -static -o $@ $< -lpthread
$(O)/victims/verify-musl-static: tests/victims/verify.c
	@mkdir -p $(@D)
	musl-gcc -std=gnu11 $(VICTIM_FLAGS) -static -o $@ $< -lpthread
$(O)/victims/churn-musl: tests/victims/churn.c
	@mkdir -p $(@D)
	musl-gcc -std=gnu11 $(VICTIM_FLAGS) -o $@ $< -lpthread
$(O)/victims/churn-musl-static: tests/victims/churn.c
	@mkdir -p $(@D)
	$(MUSL_CC) -std=gnu11 $(VICTIM_FLAGS) -static -o $@ $< -lpthread $(MUSL_LIBS)
$(O)/victims/chaos: $(wildcard tests/victims/chaos/*.[ch])
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(VICTIM_FLAGS) -o $@ $(filter %.c,$^) -lpthread -lm
# -rdynamic: its definitions must be found by name, as those of any allocator.
$(O)/victims/coroutine: tests/victims/coroutine.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(VICTIM_FLAGS) -rdynamic -o $@ $<
# Victims that other compilers build: only for the host architecture.
ifeq ($(ARCH),$(HOST_ARCH))
HOST_VICTIMS = $(O)/victims/cgo $(O)/victims/churn-musl $(O)/victims/containers-libcxx $(O)/victims/glibs
endif
$(O)/victims/cgo: tests/victims/cgo.go
	@mkdir -p $(@D)
	GOCACHE=$(abspath $(O)/go) GO111MODULE=off CGO_ENABLED=1 go build -o $@ $<
$(O)/victims/Churn.class: tests/victims/Churn.java
	@mkdir -p $(@D)
	javac -d $(@D) $<
$(O)/victims/unwalked-partition: CONSTANT = partition_alloc/partitions
$(O)/victims/unwalked-google: CONSTANT = tcmalloc.per_cpu_caches_active
$(O)/victims/unwalked-partition $(O)/victims/unwalked-google: tests/victims/unwalked.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(VICTIM_FLAGS) -DCONSTANT='"$(CONSTANT)"' -o $@ $<
$(O)/victims/truth-static: tests/victims/truth.c tests/victims/truth.h
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(VICTIM_FLAGS) -static -s -o $@ $< -lpthread
$(O)/victims/truth-jemalloc-static: tests/victims/truth.c tests/victims/truth.h
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(VICTIM_FLAGS) -static -s -o $@ $< -ljemalloc -lstdc++ -lm -lpthread 2>/dev/null
$(O)/victims/truth-tcmalloc-static: tests/victims/truth.c tests/victims/truth.h
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(VICTIM_FLAGS) -static -s -o $@ $< -Wl,--whole-archive -ltcmalloc_minimal \
		-Wl,--no-whole-archive -lstdc++ -lm -lpthread 2>/dev/null
$(O)/victims/truth-musl: tests/victims/truth.c tests/victims/truth.h
	@mkdir -p $(@D)
	musl-gcc -std=gnu11 $(VICTIM_FLAGS) -o $@ $< -lpthread
$(O)/victims/truth-musl-static: tests/victims/truth.c tests/victims/truth.h
	@mkdir -p $(@D)
	musl-gcc -std=gnu11 $(VICTIM_FLAGS) -static -s -o $@ $< -lpthread
$(O)/victims/truth: tests/victims/truth.h
$(O)/victims/random_graph: tests/victims/random_truth.h
$(O)/victims/cases-lsan: tests/victims/cases.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(VICTIM_FLAGS) -DWITH_LSAN -fsanitize=leak -o $@ $< -lpthread
$(O)/victims/objects-stripped $(O)/victims/retained-stripped $(O)/victims/growing-stripped $(O)/victims/shapes-stripped $(O)/victims/shapes_std-stripped: $(O)/victims/%-stripped: $(O)/victims/%
	$(STRIP) -o $@ $<
# Another build of the same program, stripped.
$(O)/victims/growing-other: tests/victims/growing.cc
	@mkdir -p $(@D)
	$(CXX) -std=c++17 $(VICTIM_FLAGS) -O1 -s -o $@ $< -lpthread
# Without debug information; with it in a file of its own; and with another library, by another compiler.
$(O)/victims/containers-nodebug: tests/victims/containers.cc
	@mkdir -p $(@D)
	$(CXX) -std=c++17 $(VICTIM_FLAGS) -g0 -o $@ $< -lpthread
$(O)/victims/containers-debuglink: $(O)/victims/containers
	$(OBJCOPY) --only-keep-debug $< $@.debug
	$(OBJCOPY) --strip-debug --remove-section=.note.gnu.build-id --add-gnu-debuglink=$@.debug $< $@
$(O)/victims/containers-libcxx: tests/victims/containers.cc
	@mkdir -p $(@D)
	clang++ -stdlib=libc++ -std=c++17 $(VICTIM_FLAGS) -o $@ $< -lpthread
$(O)/victims/glibs: tests/victims/glibs.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(VICTIM_FLAGS) $$(pkg-config --cflags glib-2.0) -o $@ $< $$(pkg-config --libs glib-2.0)
comma = ,
BLOCKS_WRAPPED = malloc calloc realloc free memalign posix_memalign aligned_alloc
$(O)/victims/blocks-static: tests/victims/blocks.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(VICTIM_FLAGS) -DWRAP $(BLOCKS_WRAPPED:%=-Wl,--wrap=%) -static -s -o $@ $< -lpthread
# In musl memalign() calls aligned_alloc(), and calloc() calls malloc().  Only one function of each
# pair is wrapped, so that a call is counted once.
MUSL_WRAPPED = $(patsubst %,-Wl$(comma)--wrap=%,malloc realloc free memalign) -Wl,--defsym=__real_calloc=calloc
$(O)/victims/blocks-musl-static: tests/victims/blocks.c
	@mkdir -p $(@D)
	$(MUSL_CC) -std=gnu11 $(VICTIM_FLAGS) -DWRAP $(MUSL_WRAPPED) -static -s -o $@ $< $(MUSL_LIBS)
# The libraries of other releases, and victims built with them.
.PHONY: releases
releases:
	scripts/releases $(O)/releases
	$(MAKE) $(OTHERS)
# truth-2.31 runs with glibc 2.31 (Debian bullseye) and later.
OTHERS = $(addprefix $(O)/victims/truth-,2.31 jemalloc-5.2-static musl-old-static)
RELEASES = $(abspath $(O)/releases)
$(O)/victims/truth-2.31: tests/victims/truth.c tests/victims/truth.h $(O)/releases/bullseye/.complete
	@mkdir -p $(@D)
	$(CC) --sysroot=$(RELEASES)/bullseye -B$(RELEASES)/bullseye/usr/lib/x86_64-linux-gnu -static-libgcc \
		-std=gnu11 $(VICTIM_FLAGS) -o $@ $< -lpthread
$(O)/victims/truth-jemalloc-5.2-static: tests/victims/truth.c tests/victims/truth.h $(O)/releases/bullseye/.complete
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(VICTIM_FLAGS) -static -s -o $@ $< \
		$(RELEASES)/bullseye/usr/lib/x86_64-linux-gnu/libjemalloc.a -lstdc++ -lm -lpthread 2>/dev/null
# The malloc that musl had before 1.2.1 replaces the one in libc.a.
OLD_MALLOC = $(addprefix $(RELEASES)/musl-old/lib/x86_64-linux-musl/,malloc.lo aligned_alloc.lo malloc_usable_size.lo)
$(O)/victims/truth-musl-old-static: tests/victims/truth.c tests/victims/truth.h $(O)/releases/bullseye/.complete
	@mkdir -p $(@D)
	musl-gcc -std=gnu11 $(VICTIM_FLAGS) -static -s -o $@ $< $(OLD_MALLOC) -lpthread
$(O)/releases/bullseye/.complete: scripts/releases
	scripts/releases $(O)/releases
victims: $(VICTIMS)

# memprof with fault points (lib/fault.h), for tests that kill it, or let calls fail, at each step.
ifneq (,$(findstring MEMPROF_FAULTS,$(OPT)))
$(foreach f,attach inject snapshot heaps leaks record formats control join api cmd,$(O)/$(f)/%.o) $(O)/lib/handover.o $(O)/lib/intern.o $(O)/lib/live.o $(O)/lib/ending_signals.o: private CFLAGS += -include src/lib/fault_calls.h -Wno-maybe-uninitialized
endif
.PHONY: faults
faults:
	@$(MAKE) --no-print-directory O=$(O)/faults OPT='$(OPT) -DMEMPROF_FAULTS' all >/dev/null

TSAN_TESTS = $(addprefix tests/system/test_,exact.py overload.py loaders.py stalled_disk.py processors.py)
# The longest come first, so that none of them runs alone at the end; those with many busy threads after
# the guests.
LONG = $(patsubst %,tests/system/test_%.py,formats exports detach targets left_as_found torture stream fleet push \
	packaging server_openapi)
SYSTEM_TESTS = $(wildcard tests/system/test_*.py)
TESTS = $(filter $(SYSTEM_TESTS),$(LONG)) $(UNIT) $(filter-out $(LONG),$(SYSTEM_TESTS))

demo: ## install what is missing, build, profile two live programs
	@scripts/setup build demo
	@$(MAKE) --no-print-directory all $(O)/victims/leaky >/dev/null
	@scripts/demo $(O)

# WITH_GUESTS=1 (set by CI): make check also makes the cross builds and runs the quick part of the
# guests' tests.  make check-guests runs all of them.
PROVE = MEMPROF=$(abspath $(O)/memprof) VICTIMS=$(abspath $(O)/victims) RELEASES=$(RELEASES) \
	CMOCKA_MESSAGE_OUTPUT=TAP prove -j$(JOBS) --timer --failures --comments --exec scripts/run-test
# Tests wait about half of their time: four at a time keep two processors busy.
JOBS ?= 4
# The test that an element of T names: test_NAME in tests/system, FOLDER/NAME in tests/unit.
named = $(or $(wildcard tests/system/$(1).py),$(filter $(O)/tests/unit/$(1),$(UNIT)),$(error no test has the name $(1)))

check: ## all tests, on real programs; T="test_exact unwind/table": only these
	@scripts/setup build check
ifdef T
	$(MAKE) all unit victims faults
	$(PROVE) $(foreach t,$(T),$(call named,$(t)))
else
	$(MAKE) all
	$(MAKE) fetched unit victims faults fuzz-corpus lint
	$(if $(WITH_GUESTS),$(MAKE) guests)
	$(PROVE) $(if $(WITH_GUESTS),$(GUEST_FOLDERS:%=%/guest.cpio)) $(TESTS)
endif

# What tests need of the network.  Without it, they say what they skip.
.PHONY: fetched
fetched:
	$(if $(WITH_GUESTS),,-)$(MAKE) -k sysroots releases

# Unit tests that read packages of other releases and architectures, which make check fetches.
WITH_PACKAGES = %_packages %/arm_reloc %/heaps/walkers
check-fast: ## what needs no process and no package: layers, format, unit tests
	@scripts/setup build check
	$(MAKE) all
	$(MAKE) lint-layers lint-format unit
	CMOCKA_MESSAGE_OUTPUT=TAP prove --exec scripts/run-test $(filter-out $(WITH_PACKAGES),$(UNIT))

N ?= 20
check-flaky: all unit victims faults ## N=20 runs of the tests (or of T) beside busy processes; lists what failed
	scripts/check-flaky $(O) $(N) '$(PROVE)' $(if $(T),$(foreach t,$(T),$(call named,$(t))),$(TESTS))

# WARN has no -Werror here: gcc warns that ThreadSanitizer does not support fences.
tsan: victims ## the recorder and the reports under ThreadSanitizer
	$(MAKE) O=$(O)/tsan WARN=-Wall SAN=-fsanitize=thread all
	MEMPROF=$(abspath $(O)/tsan/memprof) VICTIMS=$(abspath $(O)/victims) \
		prove --failures --comments --exec scripts/run-test $(TSAN_TESTS)

# Also checks the patches for MIPS kernels (doc/mips64.md).
check-all: ## make check with the long loops at full length
	@scripts/setup others
	! command -v javac >/dev/null || $(MAKE) $(O)/victims/Churn.class
	MEMPROF_FULL=1 $(MAKE) check
	MEMPROF_FULL=1 $(MAKE) check-stacks
	$(MAKE) fuzz FUZZ_SECONDS=120
	$(MAKE) -C kernel-patches check FORCE=1

# To be run before a release, and when scripts/setup has changed.  CHECK="SYSTEM_TESTS=" leaves out
# the tests on real programs.
.PHONY: check-fresh
check-fresh: ## make demo and make check on an empty Debian 12
	scripts/check-fresh $(CHECK)

# Compares every walk of the agent with a complete one, on many kinds of stacks.
check-stacks: ## every walk of the agent against a complete one
	@scripts/setup build bench
	$(MAKE) O=$(O)/checking AGENT_CHECK=1 all $(O)/checking/victims/walks \
		$(BENCHED:%=$(O)/checking/bench/%)
	scripts/check-stacks $(O)/checking $(if $(MEMPROF_FULL),30,2)

BENCHED = pairs parser mixed shared paths pages steps uprobe
$(O)/bench/%: bench/programs/%.c bench/programs/measure.h
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(VICTIM_FLAGS) -o $@ $< -lpthread
$(O)/bench/recorder: bench/programs/recorder.c $(O)/record.a $(DEPS_record:%=$(O)/%.a)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -o $@ $< -Wl,--start-group $(O)/record.a $(DEPS_record:%=$(O)/%.a) -Wl,--end-group $(LDLIBS)

bench: ## the measurements of doc/overhead.md
	@scripts/setup build bench
	$(MAKE) all
	$(MAKE) $(BENCHED:%=$(O)/bench/%) $(O)/bench/recorder
	bench/run $(O)

SOURCES = $(foreach f,src packaging tests/unit tests/victims tests/fuzz tests/library examples/library,$(wildcard $(f)/*.[ch] $(f)/*/*.[ch] $(f)/*/*/*.[ch]))
LINTED = $(foreach f,$(FOLDERS),$(SRC_$(f))) $(wildcard src/tools/*.c)
LINTS = layers format cppcheck page tidy
.PHONY: $(LINTS:%=lint-%)
lint: $(LINTS:%=lint-%) ## layers, format, cppcheck, clang-tidy; prettier, tsc and eslint for the page
lint-layers: all
	scripts/check-layers $(O) $(foreach f,$(FOLDERS),'$(f): $(DEPS_$(f))') 'tools: formats lib'
# These run again only if what they read has changed.
lint-format:
	@scripts/verified format clang-format .clang-format $(SOURCES) -- clang-format --dry-run -Werror $(SOURCES)
lint-cppcheck: all
	@scripts/verified cppcheck cppcheck src -- cppcheck --quiet -j 2 --error-exitcode=1 --std=c11 \
		--inline-suppr -Isrc -D_GNU_SOURCE -D__x86_64__ --suppress=missingIncludeSystem \
		--enable=warning,portability $(LINTED)
lint-page: all
	@$(if $(wildcard web/node_modules/eslint),scripts/verified page npm $(PAGE_SOURCES) tests/page -- npm --prefix web run --silent lint)
lint-tidy: all
	@scripts/verified tidy clang-tidy .clang-tidy scripts/tidy src -- scripts/tidy $(O) \
		'-std=gnu11 -Isrc -I$(O) -D_GNU_SOURCE -DMEMPROF_VERSION="$(VERSION)"' $(LINTED)

format: ## clang-format on all sources
	clang-format -i $(SOURCES)

# For clangd and other tools that must know how each file is compiled.
compile_commands.json: Makefile
	@{ sep='['; for f in $(LINTED); do printf '%s\n{"directory": "%s", "file": "%s", "command": "%s"}' "$$sep" \
		'$(CURDIR)' "$$f" '$(CC) $(CFLAGS) -DMEMPROF_VERSION=\\\"$(VERSION)\\\" -c '"$$f"; sep=,; done; echo ']'; } > $@

clean: ## remove what was built
	rm -rf $(O)
