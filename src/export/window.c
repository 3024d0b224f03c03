/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/window.h"

size_t window_notes(const struct profile_window *w, bool allocated, bool live,
		    struct window_note note[WINDOW_NOTES])
{
	const struct {
		bool wanted;
		struct window_note note;
	} all[WINDOW_NOTES] = {
	    {allocated, {"memprof.lost_events", w->lost_events}},
	    {live, {"memprof.all_lost_events", w->all_lost_events}},
	    {live, {"memprof.lost_frees", w->lost_frees}},
	    {live, {"memprof.live_bytes_standard_error", w->live_error}},
	    {allocated || live, {"memprof.thinned_allocations", w->thinned}},
	};
	size_t n = 0;

	for (size_t i = 0; i < WINDOW_NOTES; i++) {
		if (all[i].wanted && all[i].note.value)
			note[n++] = all[i].note;
	}
	return n;
}
