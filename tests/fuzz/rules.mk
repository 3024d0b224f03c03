# Fuzz targets: tests/fuzz/*.c with libFuzzer, AddressSanitizer and UBSan, in a separate build.
# `make fuzz` runs each for FUZZ_SECONDS from the corpus in tests/fuzz/corpus.

FUZZ_SECONDS ?= 60
FUZZ_SAN = -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
FUZZERS = $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/*.c))

.PHONY: fuzz fuzz-build fuzz-programs
fuzz: fuzz-build ## each fuzz target for FUZZ_SECONDS
	for f in $(FUZZERS); do scripts/fuzz $(O)/fuzz/$$f $(FUZZ_SECONDS) || exit 1; done

fuzz-build:
	@scripts/setup build fuzz
	$(MAKE) O=$(O)/fuzz CC=clang OPT="-O1 -g" SAN="$(FUZZ_SAN)" fuzz-programs

fuzz-programs: $(FUZZERS:%=$(O)/%)
$(FUZZERS:%=$(O)/%): $(O)/%: tests/fuzz/%.c tests/fuzz/fuzz.h $(O)/cmd.a $(DEPS_cmd:%=$(O)/%.a)
	$(CC) $(CFLAGS) -Itests/fuzz -fsanitize=fuzzer -o $@ $< -Wl,--start-group $(O)/cmd.a \
		$(DEPS_cmd:%=$(O)/%.a) -Wl,--end-group $(LDLIBS)
