/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What a recording of page faults answers, and what it has no answer to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "formats/file.h"
#include "formats/session.h"
#include "model/model.h"
#include "server/answers/frames.h"
#include "server/call.h"
#include "server/endpoint.h"
#include "server/recordings.h"
#include "server/status.h"

static char path[] = "/tmp/memprof-unit-XXXXXX";

/* Three faults of pages of 4 KiB at one place. */
static int setup(void **state)
{
	struct mp_info info = {.pid = 7, .what = MP_PAGE_FAULTS, .page_size = 4096};
	struct mp_symbol symbol = {.function = "touch", .source = "/src/touch.c", .line = 3};
	struct mp_finish finish = {.reason = 1, .end_ns = 5000000000};
	uint64_t pc = 0x400001 | SS_PC_EXACT;
	struct mp_event ev = {.kind = EV_FAULT,
			      .size = 4096,
			      .usable = 4096,
			      .stack = 1,
			      .tid = 7,
			      .fd = -1,
			      .hook = UINT16_MAX};
	struct mpf_writer *w;

	(void)state;
	close(mkstemp(path));
	assert_int_equal(mpf_create(path, &info, &w, NULL), 0);
	assert_int_equal(mpf_put_stack(w, 1, SS_STACK_COMPLETE, &pc, 1), 0);
	for (uint64_t i = 1; i <= 3; i++) {
		ev.time_ns = i * 1000000000;
		ev.addr = i * 4096;
		assert_int_equal(mpf_put_event(w, &ev), 0);
	}
	assert_int_equal(mpf_put_symbols(w, pc, &symbol, 1), 0);
	assert_int_equal(mpf_put_finish(w, &finish), 0);
	return mpf_close(w);
}

static int teardown(void **state)
{
	(void)state;
	return unlink(path);
}

/* Return: the HTTP status of the answer, whose text is in @text. */
static unsigned int ask(const char *endpoint, const char *query, char *text, size_t room)
{
	struct recordings r = {0};
	struct frame_counts *counts = NULL;
	struct mp_err err = {0};
	struct model m;
	struct call c;
	struct model_options o = {.filter = &c.filter};
	struct answer a = {.call = &c, .recordings = &r, .m = &m, .counts = &counts};
	char url[64], *written = NULL;
	size_t size;
	bool known;
	int ret;

	assert_int_equal(recordings_add(&r, path, &known, &err), 0);
	snprintf(url, sizeof(url), "/data/last/%s", endpoint);
	assert_int_equal(call_parse(&r, url, query, &c, &err), 200);
	assert_int_equal(model_load(path, &o, &m, &err), 0);
	a.out = open_memstream(&written, &size);
	ret = c.endpoint->write(&a, &err);
	fclose(a.out);
	snprintf(text, room, "%s", ret ? err.what : written);
	/* Nothing was written: so the client gets the status. */
	if (ret)
		assert_int_equal(size, 0);
	free(written);
	frame_counts_free(counts);
	model_free(&m);
	call_free(&c);
	recordings_free(&r);
	return ret ? status_of(ret, &err) : 200;
}

static void answers(void **state)
{
	char text[4096];

	(void)state;
	assert_int_equal(ask("export/collapsed", "", text, sizeof(text)), 200);
	assert_string_equal(text, "touch 12288\n");
	assert_int_equal(ask("export/flamegraph.pl", "cost=faults", text, sizeof(text)), 200);
	assert_string_equal(text, "touch 3\n");
	assert_int_equal(ask("export/flamegraph", "", text, sizeof(text)), 200);
	assert_non_null(strstr(text, "<svg "));
	assert_int_equal(ask("report", "", text, sizeof(text)), 200);
	assert_non_null(strstr(text, "\"event\": \"page-faults\""));
	assert_int_equal(ask("peek", "function=touch", text, sizeof(text)), 200);
	assert_non_null(strstr(text, "12.0 KiB"));
	assert_int_equal(ask("maps", "", text, sizeof(text)), 200);
	assert_string_equal(text, "{\"maps\":[],\"total_count\":0}");
	assert_int_equal(ask("info", "", text, sizeof(text)), 200);
	assert_non_null(strstr(text, "\"fault\": 3"));
}

static void refusals(void **state)
{
	static const char *const none[][2] = {{"export/heaptrack", ""},
					      {"export/pprof", ""},
					      {"export/replay", ""},
					      {"export/csv", ""},
					      {"export/plot", ""},
					      {"export/speedscope", ""},
					      {"allocation_ascii_tree", ""},
					      {"growth", ""},
					      {"libraries", ""},
					      {"threads", ""},
					      {"sizes", ""},
					      {"diff", "at=1s"},
					      {"annotate", "file=touch.c"},
					      {"export/flamegraph", "cost=live"}};
	char text[4096];

	(void)state;
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		assert_int_equal(ask(none[i][0], none[i][1], text, sizeof(text)), 400);
		assert_non_null(strstr(text, "recording of page faults"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(answers), cmocka_unit_test(refusals)};

	return cmocka_run_group_tests(tests, setup, teardown);
}
