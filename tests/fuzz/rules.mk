# Fuzz targets: tests/fuzz/*.c with libFuzzer, AddressSanitizer and UBSan, in a separate build.
# `make fuzz` runs each for FUZZ_SECONDS from the corpus in tests/fuzz/corpus.

FUZZ_SECONDS ?= 60
FUZZ_SAN = -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
FUZZERS = $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/*.c))
# make check only runs the inputs of the corpus: it saves more time by compiling without optimization
# than the programs then take longer.
FUZZ_DIR = $(O)/fuzz$(if $(MEMPROF_FULL),-search)
FUZZ_OPT = $(if $(MEMPROF_FULL),-O1 -g,-O0 -g1)

.PHONY: fuzz fuzz-build fuzz-programs
fuzz: ## each fuzz target for FUZZ_SECONDS
	$(MAKE) MEMPROF_FULL=1 fuzz-build
	for f in $(FUZZERS); do scripts/fuzz $(O)/fuzz-search/$$f $(FUZZ_SECONDS) || exit 1; done

fuzz-build:
	@scripts/setup build fuzz
	$(MAKE) O=$(FUZZ_DIR) CC=clang OPT="$(FUZZ_OPT)" SAN="$(FUZZ_SAN)" fuzz-programs

fuzz-programs: $(FUZZERS:%=$(O)/%)
$(FUZZERS:%=$(O)/%): $(O)/%: tests/fuzz/%.c tests/fuzz/fuzz.h $(O)/cmd.a $(DEPS_cmd:%=$(O)/%.a)
	$(CC) $(CFLAGS) -Itests/fuzz -fsanitize=fuzzer -o $@ $< -Wl,--start-group $(O)/cmd.a \
		$(DEPS_cmd:%=$(O)/%.a) -Wl,--end-group $(LDLIBS)
