# Guests: tests of memprof on a real kernel of each architecture, in qemu-system.  The image is
# guest.cpio; the file guest.cpio.arch has the architecture and the path of Debian's kernel.
GUEST_SYSROOT = $(or $(SYSROOT),$(CURDIR)/build/sysroot)
GUEST_VICTIMS = $(addprefix $(O)/victims/,verify verify-static exact faults stacks throws restart signals family flood \
	leaky blocks blocks-static signal_stacks cases loaders libwrapper.so block objects objects-stripped sandbox \
	$(if $(filter x86_64 aarch64,$(ARCH)),blocks-musl-static) $(if $(filter aarch64,$(ARCH)),truth walkers))
# The unit test that compares heap walkers with the program truth.
$(O)/victims/walkers: $(O)/tests/unit/heaps/walkers
	@mkdir -p $(@D)
	cp $< $@
# A32 code.  By default the compiler makes Thumb code, and Debian's libraries are Thumb code.
ifeq ($(ARCH),arm)
GUEST_VICTIMS += $(addprefix $(O)/victims/,stacks-a32 exact-a32 libwrapper-a32.so)
endif
$(O)/victims/stacks-a32: tests/victims/stacks.cc
	@mkdir -p $(@D)
	$(CXX) -std=c++17 $(VICTIM_FLAGS) -marm -o $@ $< -lpthread
$(O)/victims/exact-a32: tests/victims/exact.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(VICTIM_FLAGS) -marm -o $@ $< -lpthread
$(O)/victims/libwrapper-a32.so: tests/victims/wrapper.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(VICTIM_FLAGS) -marm -fno-builtin -fPIC -shared -o $@ $<

GUESTS = x86_64 aarch64 arm mips64

GUEST_FOLDERS = $(foreach a,$(GUESTS),$(if $(filter $(a),$(HOST_ARCH)),build,build/$(a)))

# The sysroots: the systems of the guests, and packages whose functions the unit tests relocate.
SYSROOTS = $(GUESTS:%=sysroot-%)
.PHONY: guest guests check-guest check-guests guest-recordings guest-table sysroots $(SYSROOTS)
sysroots: $(SYSROOTS)
$(SYSROOTS): sysroot-%:
	@scripts/sysroot $* build/sysroot
guest: $(O)/guest.cpio
# build/ARCH/static/guest.cpio has the static memprof.
$(O)/guest.cpio $(O)/static/guest.cpio: %/guest.cpio: %/memprof $(GUEST_VICTIMS) tests/guest/image.py
	@scripts/setup build guests
	@[ -n "$(SYSROOT)" ] || scripts/sysroot $(ARCH) $(GUEST_SYSROOT)
	@echo $(ARCH) $(GUEST_SYSROOT)/$(ARCH)/boot/vmlinuz >$@.arch
	tests/guest/build-image $(GUEST_SYSROOT)/$(ARCH) $(@D) $@ $(STRIP) $(GUEST_VICTIMS)

guests:
	for a in $(GUESTS); do $(MAKE) ARCH=$$a guest || exit 1; done

# The tests in the guest of one architecture (make ARCH=arm check-guest).
check-guest: $(O)/guest.cpio
	prove --failures --comments --exec tests/guest/run $<
check-guests: guests ## all tests in the guests, as a table
	prove --failures --comments --exec tests/guest/run $(GUEST_FOLDERS:%=%/guest.cpio)
	MEMPROF=$(abspath build/memprof) prove --failures --comments tests/guest/stream_sender.py
	tests/guest/table --check $(GUEST_FOLDERS)
# Prints the table of doc/architectures.md from the results of the last runs.
guest-table:
	tests/guest/table $(GUEST_FOLDERS)
# Makes tests/recordings, which memprof must read on every architecture.  To be run when the format
# changes.
guest-recordings: guests
	tests/guest/recordings $(GUEST_FOLDERS:%=%/guest.cpio)
