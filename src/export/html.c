/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/html.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include "export/base64.h"
#include "export/lists/growth_list.h"
#include "export/json.h"
#include "export/output.h"
#include "export/lists/sum_lists.h"

/* page_file.S */
extern const char page_html[], page_html_end[];

static const char data_place[] = "<!--memprof-data-->";
static const char data_begin[] = "<script id=\"memprof-data\" type=\"text/plain\">";
static const char data_end[] = "</script>";

const char *html_page(size_t *size)
{
	*size = (size_t)((uintptr_t)page_html_end - (uintptr_t)page_html);
	return *size ? page_html : NULL;
}

int html_check(struct mp_err *err)
{
	size_t size;

	if (html_page(&size))
		return 0;
	return mp_fail(
	    err, MP_EXIT_USAGE, -ENOSYS,
	    "this memprof was built without npm, and has no page: build it on a machine with npm, "
	    "or use another format");
}

/* ------------------------------------------------------------------ answers -- */

static int write_report(struct model *m, FILE *out)
{
	return json_write(m, GROUP_BY_LINE, false, out);
}

static int write_growth(struct model *m, FILE *out)
{
	const struct growth_list_options o = {.view = {.count = VIEW_ALL}};

	return growth_list_write(m, &o, out);
}

static int write_libraries(struct model *m, FILE *out)
{
	return sum_lists_write(m, SUMS_LIBRARY, true, out);
}

static int write_threads(struct model *m, FILE *out)
{
	return sum_lists_write(m, SUMS_THREAD, true, out);
}

static int write_sizes(struct model *m, FILE *out)
{
	return sum_lists_write(m, SUMS_SIZE, true, out);
}

static const struct {
	const char *name;
	int (*write)(struct model *m, FILE *out);
} answers[] = {
    {"report", write_report},	{"growth", write_growth}, {"libraries", write_libraries},
    {"threads", write_threads}, {"sizes", write_sizes},
};

static int write_answers(struct model *m, FILE *out)
{
	int ret = 0;

	fputs("{\"version\": 1, \"answers\": {", out);
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]) && !ret; i++) {
		fprintf(out, "%s\"%s\": ", i ? ", " : "", answers[i].name);
		ret = answers[i].write(m, out);
	}
	fputs("}}\n", out);
	return ret;
}

/* ------------------------------------------------------------------ page -- */

/* Writes the answers as they are in the page, in bounded memory. */
static int write_data(struct model *m, FILE *out)
{
	FILE *text = base64_stream(out), *packed = text ? output_gzip(text) : NULL;
	int ret = packed ? write_answers(m, packed) : -ENOMEM, closed;

	closed = packed ? output_close(packed) : 0;
	ret = ret ? ret : closed;
	closed = text ? output_close(text) : 0;
	return ret ? ret : closed;
}

int html_write(struct model *m, FILE *out, struct mp_err *err)
{
	int ret = html_check(err);
	const char *page, *place;
	size_t size, before;

	if (ret)
		return ret;
	page = html_page(&size);
	place = memmem(page, size, data_place, sizeof(data_place) - 1);
	if (!place)
		return mp_fail(err, MP_EXIT_FAILURE, -EPROTO,
			       "the page of this memprof has no place for data");
	before = (size_t)(place - page);
	fwrite(page, 1, before, out);
	fputs(data_begin, out);
	ret = write_data(m, out);
	fputs(data_end, out);
	before += sizeof(data_place) - 1;
	fwrite(page + before, 1, size - before, out);
	if (!ret && ferror(out))
		ret = -EIO;
	return ret ? mp_fail(err, MP_EXIT_OUTPUT, ret, "cannot write the report: %s",
			     strerror(-ret))
		   : 0;
}
