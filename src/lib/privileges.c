/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lib/privileges.h"

#include <cap-ng.h>
#include <errno.h>
#include <stdbool.h>
#include <sys/prctl.h>

#ifndef CAP_CHECKPOINT_RESTORE
#define CAP_CHECKPOINT_RESTORE 40
#endif

static bool keeps(enum privileges p, unsigned int cap)
{
	bool has_restore = capng_have_capability(CAPNG_PERMITTED, CAP_CHECKPOINT_RESTORE);

	if (p == PRIVILEGES_NONE)
		return false;
	/* Without CAP_SYS_PTRACE the kernel lets memprof attach only while its capabilities include
	 * all of the target's. */
	if (!capng_have_capability(CAPNG_PERMITTED, CAP_SYS_PTRACE))
		return true;
	if (cap == (p == PRIVILEGES_FILES ? CAP_DAC_OVERRIDE : CAP_SYS_NICE))
		return true;
	return cap == CAP_SYS_PTRACE || cap == CAP_DAC_READ_SEARCH ||
	       cap == CAP_CHECKPOINT_RESTORE || (cap == CAP_SYS_ADMIN && !has_restore);
}

int privileges_keep(enum privileges p)
{
	bool kept[64] = {false};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -EPERM;
	capng_clear(CAPNG_SELECT_CAPS);
	if (capng_get_caps_process())
		return -EPERM;
	for (unsigned int cap = 0; cap <= CAP_LAST_CAP && cap < 64; cap++)
		kept[cap] = keeps(p, cap) && capng_have_capability(CAPNG_PERMITTED, cap);
	capng_clear(CAPNG_SELECT_CAPS);
	for (unsigned int cap = 0; cap <= CAP_LAST_CAP && cap < 64; cap++) {
		if (kept[cap] && capng_update(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED, cap))
			return -EPERM;
	}
	return capng_apply(CAPNG_SELECT_CAPS) ? -EPERM : 0;
}
