# What users install: make install, the Debian packages, the static program, tarballs and SBOMs.  The
# files go to $(DIST).  Each build of a commit with the same packages of Debian makes the same bytes
# (doc/install.md).

# GNU's names of the folders; PREFIX=/usr is understood, too.
PREFIX ?= /usr/local
prefix ?= $(PREFIX)
bindir ?= $(prefix)/bin
datarootdir ?= $(prefix)/share
mandir ?= $(datarootdir)/man
docdir ?= $(datarootdir)/doc/memprof
bashdir ?= $(datarootdir)/bash-completion/completions
zshdir ?= $(datarootdir)/zsh/site-functions
fishdir ?= $(datarootdir)/fish/vendor_completions.d
libdir ?= $(prefix)/lib
includedir ?= $(prefix)/include
pkgconfigdir ?= $(libdir)/pkgconfig
unitdir ?= $(prefix)/lib/systemd/system
# Where Debian's Python looks for modules that were installed with this prefix.
pythondir ?= $(prefix)/lib/$(if $(filter /usr,$(prefix)),python3,$(PYTHON_VERSION))/dist-packages
PYTHON_VERSION = $(or $(shell python3 -c 'import sys; print("python%d.%d" % sys.version_info[:2])' 2>/dev/null),python3)

DIST = $(O)/dist
RELEASE = memprof-$(VERSION)
STATIC = $(O)/static/memprof
STATIC_NAME = $(RELEASE)-linux-$(ARCH)
EPOCH = $(firstword $(shell packaging/commit))
TAR = tar --format=gnu --sort=name --owner=0 --group=0 --numeric-owner --mtime=@$(EPOCH)

.PHONY: man install install-programs install-services install-library install-python uninstall static static-tarball deb image sbom dist release
# The manual page of each command is made from its --help.  A memprof for another architecture cannot
# print it here: the one for this machine does.
PRINTER = $(if $(filter $(ARCH),$(HOST_ARCH)),$(O),build)/memprof
ifneq ($(ARCH),$(HOST_ARCH))
build/memprof:
	$(MAKE) ARCH=$(HOST_ARCH) O=build $@
endif
man: $(O)/man/.complete ## the manual page of each command, in build/man
$(O)/man/.complete: $(PRINTER) scripts/man-pages doc/memprof.1
	scripts/man-pages $(PRINTER) $(O)/man
	touch $@

# PROGRAM: what is installed as memprof.
PROGRAM = $(O)/memprof
install: install-programs install-services install-library install-python ## into $(DESTDIR)$(prefix): programs, services, library, manual pages, completions, documents
install-programs: all man
	install -d $(addprefix $(DESTDIR),$(bindir) $(mandir)/man1 $(bashdir) $(zshdir) $(fishdir) $(docdir)/doc)
	install -m 755 $(PROGRAM) $(DESTDIR)$(bindir)/memprof
	install -m 755 $(O)/memprof-replay $(DESTDIR)$(bindir)
	install -m 644 doc/*.1 $(O)/man/*.1 $(DESTDIR)$(mandir)/man1
	install -m 644 scripts/completion/memprof.bash $(DESTDIR)$(bashdir)/memprof
	install -m 644 scripts/completion/memprof.zsh $(DESTDIR)$(zshdir)/_memprof
	install -m 644 scripts/completion/memprof.fish $(DESTDIR)$(fishdir)/memprof.fish
	install -m 644 README.md CHANGELOG.md SECURITY.md LICENSE-* $(DESTDIR)$(docdir)
	install -m 644 doc/*.md doc/*.json $(DESTDIR)$(docdir)/doc
# SERVICE_BINDIR: where the services look for memprof.
SERVICE_BINDIR = $(bindir)
install-services:
	install -d $(DESTDIR)$(unitdir)
	sed -e 's|@bindir@|$(SERVICE_BINDIR)|; s|@which@|--all|; s|@processes@|all processes|' \
		packaging/memprof.service.in >$(DESTDIR)$(unitdir)/memprof.service
	sed -e 's|@bindir@|$(SERVICE_BINDIR)|; s|@which@|-n %i|; s|@processes@|the processes named %i|' \
		packaging/memprof.service.in >$(DESTDIR)$(unitdir)/memprof@.service
install-library: all
	install -d $(addprefix $(DESTDIR),$(libdir) $(includedir) $(pkgconfigdir) $(mandir)/man3 $(docdir)/examples)
	install -m 644 $(O)/$(SONAME) $(O)/libmemprof.a $(DESTDIR)$(libdir)
	ln -sf $(SONAME) $(DESTDIR)$(libdir)/libmemprof.so
	install -m 644 src/api/memprof.h $(DESTDIR)$(includedir)
	sed -e 's|@prefix@|$(prefix)|; s|@libdir@|$(libdir)|; s|@includedir@|$(includedir)|; s|@version@|$(API_VERSION)|' \
		-e 's|@libraries@|$(LIBRARY_LDLIBS)|' src/api/memprof.pc.in >$(DESTDIR)$(pkgconfigdir)/memprof.pc
	install -m 644 doc/*.3 $(DESTDIR)$(mandir)/man3
	install -m 644 examples/library/* $(DESTDIR)$(docdir)/examples

# The metadata let pytest find the plug-in.
DISTINFO = $(DESTDIR)$(pythondir)/memprof-$(VERSION).dist-info
install-python:
	install -d $(DESTDIR)$(pythondir)/memprof $(DISTINFO)
	install -m 644 bindings/python/memprof/*.py $(DESTDIR)$(pythondir)/memprof
	printf 'Metadata-Version: 2.1\nName: memprof\nVersion: $(VERSION)\n' >$(DISTINFO)/METADATA
	printf '[pytest11]\nmemprof = memprof.pytest_plugin\n' >$(DISTINFO)/entry_points.txt

uninstall: ## remove what make install installed, with the same variables
	rm -f $(addprefix $(DESTDIR)$(bindir)/,memprof memprof-replay) \
		$(addprefix $(DESTDIR)$(mandir)/,man1/memprof.1 man1/memprof-*.1 man3/libmemprof.3) $(DESTDIR)$(bashdir)/memprof \
		$(DESTDIR)$(zshdir)/_memprof $(DESTDIR)$(fishdir)/memprof.fish $(DESTDIR)$(includedir)/memprof.h \
		$(addprefix $(DESTDIR)$(libdir)/,$(SONAME) libmemprof.so libmemprof.a) $(DESTDIR)$(pkgconfigdir)/memprof.pc \
		$(addprefix $(DESTDIR)$(unitdir)/,memprof.service memprof@.service)
	rm -rf $(DESTDIR)$(docdir) $(DESTDIR)$(pythondir)/memprof $(DISTINFO)

# ------------------------------------------------------------- a static program

# Where a cross build finds its libraries.
LINK_SYSROOT = $(if $(CROSS),$(SYSROOT)/$(ARCH))
# liblzma, libbz2: what libdw needs.
STATIC_LDLIBS = $(patsubst -lyajl,-lyajl_s,$(LDLIBS)) -llzma -lbz2
static: all ## memprof without shared libraries, in build/static
	@scripts/setup build package
	$(MAKE) $(STATIC)
$(O)/static/static.o: packaging/static.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -c -o $@ $<
$(STATIC): $(O)/static/static.o $(O)/cmd.a $(DEPS_cmd:%=$(O)/%.a) $(O)/agent_blob.o
	$(CC) $(CFLAGS) $(LDFLAGS) -static-pie -Wl,--fatal-warnings,--wrap=dlopen,-t,-t -o $@ -Wl,--start-group $^ -Wl,--end-group \
		$(STATIC_LDLIBS) >$@.link

static-tarball: static man ## the static memprof with all that belongs to it, in build/dist
	rm -rf $(O)/static/$(STATIC_NAME)
	$(MAKE) install-programs install-services PROGRAM=$(STATIC) prefix=/ SERVICE_BINDIR=/usr/local/bin \
		DESTDIR=$(O)/static/$(STATIC_NAME)
	$(STRIP) $(O)/static/$(STATIC_NAME)/bin/*
	cp doc/install.md $(O)/static/$(STATIC_NAME)/README.md
	packaging/licences $(STATIC) $(STATIC).link $(O)/static/$(STATIC_NAME)/share/doc/memprof/licences $(LINK_SYSROOT)
	packaging/sbom --version $(VERSION) --page $(dir $(PAGE))packages.json --name $(STATIC_NAME) $(addprefix --sysroot ,$(LINK_SYSROOT)) --root $(O)/static/$(STATIC_NAME) \
		--program $(O)/static/$(STATIC_NAME)/bin/memprof $(STATIC).link \
		--program $(O)/static/$(STATIC_NAME)/bin/memprof-replay $(O)/memprof-replay.link \
		>$(O)/static/$(STATIC_NAME)/share/doc/memprof/memprof.spdx.json
	@mkdir -p $(DIST)
	$(TAR) -C $(O)/static -cf - $(STATIC_NAME) | gzip -9n >$(DIST)/$(STATIC_NAME).tar.gz

# ------------------------------------------------------------- Debian's package

deb: all man ## Debian packages, in build/dist
	@scripts/setup build package
	rm -rf $(O)/deb
	$(MAKE) install prefix=/usr pythondir=/usr/lib/python3/dist-packages libdir=/usr/lib/$(shell dpkg-architecture -qDEB_HOST_MULTIARCH) \
		zshdir=/usr/share/zsh/vendor-completions DESTDIR=$(O)/deb/debian/memprof
	packaging/deb $(VERSION) $(O)/deb $(DIST)

# ------------------------------------------------------------- a container image

ENGINE ?= podman
BASE ?= docker.io/library/debian:12-slim
IMAGE_NAME ?= memprof:$(VERSION)
image: deb ## an image of a container with memprof; ENGINE=docker, BASE=another Debian 12, IMAGE_NAME=, IMAGE_OPTIONS=
	$(ENGINE) build $(IMAGE_OPTIONS) --build-arg BASE=$(BASE) --build-arg VERSION=$(VERSION) -t $(IMAGE_NAME) \
		-f packaging/container/Containerfile $(DIST)

# ------------------------------------------------------------- the release

sbom: static ## what memprof consists of (SPDX), in build/dist
	@mkdir -p $(DIST)
	packaging/sbom --version $(VERSION) --page $(dir $(PAGE))packages.json --name $(RELEASE) $(addprefix --sysroot ,$(LINK_SYSROOT)) \
		--root $(O) \
		$(foreach p,$(O)/memprof $(O)/memprof-replay $(O)/$(SONAME) $(STATIC),--program $p $p.link) --published $(DIST) >$(DIST)/$(RELEASE).spdx.json

dist: ## the source tarball of the last commit, in build/dist
	@mkdir -p $(DIST)
	git archive --format=tar --prefix=$(RELEASE)/ HEAD | gzip -9n >$(DIST)/$(RELEASE).tar.gz

release: ## all that a release consists of, with check sums, in build/dist
	rm -rf $(DIST)
	$(MAKE) dist deb static-tarball
	$(MAKE) sbom
	cd $(DIST) && sha256sum * >SHA256SUMS
