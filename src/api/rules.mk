# libmemprof, shared and static (doc/library.md).  src/api/memprof.map lists its symbols.
api_number = $(shell sed -n 's/^\#define MEMPROF_API_$(1) \([0-9]*\)$$/\1/p' src/api/memprof.h)
API_MAJOR := $(call api_number,MAJOR)
API_VERSION := $(API_MAJOR).$(call api_number,MINOR)
SONAME = libmemprof.so.$(API_MAJOR)
LIBRARY_PARTS = $(OBJ_api) -Wl,--start-group $(DEPS_api:%=$(O)/%.a) -Wl,--end-group $(O)/agent_blob.o
LIBRARY_NEEDS = $(OBJ_api) $(DEPS_api:%=$(O)/%.a) $(O)/agent_blob.o

$(O)/$(SONAME) $(O)/$(SONAME).link &: $(LIBRARY_NEEDS) src/api/memprof.map
	$(CC) $(CFLAGS) $(LDFLAGS) $(if $(SAN),,-Wl,-z,defs) -Wl,--as-needed -shared -Wl,-soname,$(SONAME) \
		-Wl,--version-script=src/api/memprof.map -Wl,-t,-t -o $(O)/$(SONAME) $(LIBRARY_PARTS) $(LIBRARY_LDLIBS) >$(O)/$(SONAME).link
$(O)/libmemprof.so: $(O)/$(SONAME)
	ln -sf $(SONAME) $@

# One object, so that the names of memprof's functions cannot meet those of the program.
$(O)/libmemprof.a: $(LIBRARY_NEEDS)
	$(CC) $(CFLAGS) -r -nostdlib -o $(O)/libmemprof.o $(LIBRARY_PARTS)
	$(OBJCOPY) --localize-hidden $(O)/libmemprof.o
	@rm -f $@
	@$(AR) rcs $@ $(O)/libmemprof.o

.PHONY: libraries
libraries: $(O)/libmemprof.so $(O)/libmemprof.a ## build only libmemprof, shared and static
