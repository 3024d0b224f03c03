/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cmd/outputs.h"

#include <string.h>
#include "cmd/cmd.h"
#include "export/output.h"
#include "lib/printable.h"

/* Is the argument of the format's option what to show, not the file to write? */
static bool names_subject(enum format f)
{
	return f == FORMAT_PEEK || f == FORMAT_ANNOTATE;
}

int outputs_add(struct outputs *o, enum format format, const char *value)
{
	if (outputs_have(o, format))
		return usage_error("report: the same format twice");
	o->at[o->n].format = format;
	o->at[o->n++].file = names_subject(format) ? NULL : value;
	o->open = !value;
	return 0;
}

bool outputs_take_word(struct outputs *o, const char *word)
{
	if (!o->open)
		return false;
	o->at[o->n - 1].file = word;
	o->open = false;
	return true;
}

bool outputs_have(const struct outputs *o, enum format format)
{
	for (uint32_t i = 0; i < o->n; i++) {
		if (o->at[i].format == format)
			return true;
	}
	return false;
}

/* The file of output @i, NULL for standard output. */
static const char *file_of(const struct outputs *o, uint32_t i)
{
	return o->at[i].file && strcmp(o->at[i].file, "-") != 0 ? o->at[i].file : NULL;
}

static int check_file(const struct outputs *o, uint32_t i)
{
	const char *file = file_of(o, i);

	if (file && output_is_recording(file))
		return usage_error("report: %s is a recording, which would be overwritten",
				   printable(file));
	for (uint32_t k = 0; k < i; k++) {
		if (!file && !file_of(o, k))
			return usage_error("report: only one format can be written to standard "
					   "output; name files: --json FILE --csv FILE");
		if (file && file_of(o, k) && !strcmp(file, file_of(o, k)))
			return usage_error("report: two formats for the file %s", printable(file));
	}
	return 0;
}

int outputs_settle(struct outputs *o, const char *usual)
{
	if (!o->n)
		o->at[o->n++].format = FORMAT_TEXT;
	if (usual) {
		uint32_t only = o->n, unnamed = 0;

		for (uint32_t i = 0; i < o->n; i++) {
			only = o->at[i].file ? only : i;
			unnamed += !o->at[i].file;
		}
		if (unnamed != 1)
			return usage_error("report: -o names the file of one format; the others "
					   "name their own: --json FILE --csv FILE");
		o->at[only].file = usual;
	}
	for (uint32_t i = 0; i < o->n; i++) {
		int status = check_file(o, i);

		if (status)
			return status;
	}
	return 0;
}
