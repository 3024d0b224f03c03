/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Parsers of the text files of /proc. */
#include "attach/proc/maps.h"
#include "attach/proc/procfs.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = input_text(data, size);
	struct proc_status st;
	struct maps maps;

	if (!maps_parse(text, &maps)) {
		maps_find(&maps, 0x1000);
		vec_for_each (&maps.list, m) {
			if (strchr(m->path, '\n'))
				abort();
		}
		maps_free(&maps);
	} else if (maps.list.n) {
		abort();
	}
	ignore_result(proc_status_parse(text, &st));
	free(text);
	return 0;
}
