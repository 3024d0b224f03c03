/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The list of architectures. */
#include "arch/arch.h"

const struct arch *const arch_all[] = {&arch_x86_64, &arch_aarch64,  &arch_arm,
				       &arch_mips64, &arch_mips64be, NULL};

const struct arch *arch_for_elf(uint8_t elf_class, uint8_t elf_data, uint16_t machine)
{
	for (size_t i = 0; arch_all[i]; i++) {
		if (arch_all[i]->elf_class == elf_class && arch_all[i]->elf_data == elf_data &&
		    arch_all[i]->elf_machine == machine)
			return arch_all[i];
	}
	return NULL;
}

const char *arch_machine_name(uint16_t machine)
{
	for (size_t i = 0; arch_all[i]; i++) {
		if (arch_all[i]->elf_machine == machine)
			return arch_all[i]->name;
	}
	return "unknown";
}

const struct arch *arch_native(void)
{
#if defined(__x86_64__)
	return &arch_x86_64;
#elif defined(__aarch64__)
	return &arch_aarch64;
#elif defined(__arm__)
	return &arch_arm;
#elif defined(__mips64) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return &arch_mips64;
#elif defined(__mips64)
	return &arch_mips64be;
#else
#error "memprof has no struct arch for this processor"
#endif
}
