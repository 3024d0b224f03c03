/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "top/save.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "export/json.h"
#include "export/output.h"
#include "export/text/text_summary.h"
#include "lib/printable.h"
#include "model/places.h"

#define SITES 20 /* of a list in text */

static bool wants_json(const char *path)
{
	static const char *const ends[] = {".json", ".json.gz", ".json.zst"};
	size_t n = strlen(path);

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		size_t k = strlen(ends[i]);

		if (n > k && !strcmp(path + n - k, ends[i]))
			return true;
	}
	return false;
}

int save_report(struct model *m, const char *path, struct mp_err *err)
{
	const struct text_options text = {.top = SITES, .others = SITES, .by = GROUP_BY_LINE};
	FILE *out;
	int ret = 0, closed;

	if (!strcmp(path, "-"))
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL, "name a file");
	if (output_is_recording(path))
		return mp_fail(err, MP_EXIT_OUTPUT, -EEXIST,
			       "%s is a recording, which would be overwritten", printable(path));
	out = output_open(path, false, err);
	if (!out)
		return -EIO;
	if (wants_json(path))
		ret = json_write(m, GROUP_BY_LINE, false, out);
	else
		text_summary(m, &text, out);
	closed = output_close(out);
	ret = ret ? ret : closed;
	return ret ? mp_fail(err, MP_EXIT_OUTPUT, ret, "cannot write %s: %s", printable(path),
			     strerror(-ret))
		   : 0;
}
