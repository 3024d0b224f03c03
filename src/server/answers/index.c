/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/answers/index.h"

#include <stdio.h>
#include "server/recordings.h"

/* src/server/openapi.json: server_files.S */
extern const char openapi_json[];

int answer_index(struct answer *a, struct mp_err *err)
{
	(void)err;
	fprintf(a->out, "memprof %s serves these recordings:\n\n", MEMPROF_VERSION);
	vec_for_each (&a->recordings->at, r)
		fprintf(a->out, "/data/%s/  %s\n", r->id, r->path);
	fprintf(a->out, "\n/list describes them, /openapi.json what can be asked of each.\n");
	return 0;
}

int answer_openapi(struct answer *a, struct mp_err *err)
{
	(void)err;
	fputs(openapi_json, a->out);
	return 0;
}
