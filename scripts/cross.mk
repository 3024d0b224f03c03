# Cross builds: sets the compiler, and makes the sysroot on first use.
CROSS_x86_64 = x86_64-linux-gnu-
CROSS_aarch64 = aarch64-linux-gnu-
CROSS_arm = arm-linux-gnueabihf-
CROSS_mips64 = mips64el-linux-gnuabi64-
CROSS_mips64be = mips64-linux-gnuabi64-
ARCH_FOLDER = $(patsubst %be,%,$(ARCH))
ifeq ($(CROSS_$(ARCH)),)
$(error no such architecture: $(ARCH); there are x86_64, aarch64, arm, mips64 and mips64be)
endif
ifneq ($(ARCH),$(HOST_ARCH))
CROSS = $(CROSS_$(ARCH))
O ?= build/$(ARCH)
ifeq ($(SYSROOT),)
SYSROOT := $(CURDIR)/build/sysroot
ifneq ($(MAKECMDGOALS),clean)
$(info $(shell scripts/setup build cross >&2 && scripts/sysroot $(ARCH) $(SYSROOT) >&2))
ifneq ($(.SHELLSTATUS),0)
$(error no sysroot for $(ARCH))
endif
endif
endif
CC = $(CROSS)gcc --sysroot=$(SYSROOT)/$(ARCH)
CXX = $(CROSS)g++ --sysroot=$(SYSROOT)/$(ARCH)
AR = $(CROSS)ar
STRIP = $(CROSS)strip
OBJCOPY = $(CROSS)objcopy
# Debian has no musl-gcc that compiles for other architectures.
MUSL = $(firstword $(wildcard $(SYSROOT)/$(ARCH)/usr/lib/*-linux-musl*))
MUSL_CC = $(CROSS)gcc -nostdinc -isystem $(SYSROOT)/$(ARCH)/usr/include/$(notdir $(MUSL)) \
	-isystem $(shell $(CROSS)gcc -print-file-name=include) -nostdlib
MUSL_LIBS = $(addprefix $(MUSL)/,crt1.o crti.o libc.a) -lgcc $(MUSL)/libc.a $(MUSL)/crtn.o
endif
MUSL_CC ?= musl-gcc
MUSL_LIBS ?= -lpthread
STRIP ?= strip
OBJCOPY ?= objcopy
