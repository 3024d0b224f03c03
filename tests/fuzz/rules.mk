# Fuzz targets: tests/fuzz/*.c with libFuzzer, AddressSanitizer and UBSan, in a separate build.
# `make fuzz` runs each for FUZZ_SECONDS from the corpus in tests/fuzz/corpus; make check only runs the inputs of the
# corpus, if the sources have changed since that passed.

FUZZ_SECONDS ?= 60
FUZZ_SAN = -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
FUZZERS = $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/*.c))

.PHONY: fuzz fuzz-corpus fuzz-inputs fuzz-programs
fuzz: ## each fuzz target for FUZZ_SECONDS
	@scripts/setup build fuzz
	$(MAKE) O=$(O)/fuzz-search CC=clang OPT="-O1 -g" SAN="$(FUZZ_SAN)" fuzz-programs
	for f in $(FUZZERS); do scripts/fuzz $(O)/fuzz-search/$$f $(FUZZ_SECONDS) || exit 1; done

fuzz-corpus: ## each fuzz target with the inputs of its corpus, if the sources have changed
	@scripts/setup build fuzz
	@scripts/verified fuzz clang src tests/fuzz scripts/fuzz -- $(MAKE) fuzz-inputs

# It saves more time to compile without optimization than the programs then take longer.
fuzz-inputs:
	$(MAKE) O=$(O)/fuzz CC=clang OPT="-O0 -g1" SAN="$(FUZZ_SAN)" fuzz-programs
	for f in $(FUZZERS); do scripts/fuzz $(O)/fuzz/$$f 0 || exit 1; done

fuzz-programs: $(FUZZERS:%=$(O)/%)
$(FUZZERS:%=$(O)/%): $(O)/%: tests/fuzz/%.c tests/fuzz/fuzz.h $(O)/cmd.a $(DEPS_cmd:%=$(O)/%.a)
	$(CC) $(CFLAGS) -Itests/fuzz -fsanitize=fuzzer -o $@ $< -Wl,--start-group $(O)/cmd.a \
		$(DEPS_cmd:%=$(O)/%.a) -Wl,--end-group $(LDLIBS)
