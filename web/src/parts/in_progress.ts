import type { Recording } from "../api";
import { useRecordings } from "../answer";
import { recording } from "../state";

/** The chosen recording as /list has it; undefined: not known yet, or it cannot be read. */
export function useChosenRecording(): Recording | undefined {
	const list = useRecordings().value ?? [];
	const chosen = list.find((r) => r.id === recording.value) ?? list.at(-1);

	return chosen?.error === undefined ? chosen : undefined;
}
