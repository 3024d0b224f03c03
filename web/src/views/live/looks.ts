import { useEffect, useState } from "preact/hooks";
import type { Look } from "../../api";
import { recording } from "../../state";

const MOST_KEPT = 600;

export interface Looking {
	/** The latest last. */
	readonly looks: readonly Look[];
	/** How many there were. */
	readonly seen: number;
	/** The server sends no more. */
	readonly lost: "" | "trying again" | "refused";
}

/** The recorder's looks as the server sends them. */
export function useLooks(): Looking {
	const [looks, setLooks] = useState<readonly Look[]>([]);
	const [lost, setLost] = useState<Looking["lost"]>("");
	const [seen, setSeen] = useState(0);
	const id = recording.value;

	useEffect(() => {
		const events = new EventSource(`data/${id}/live/events`);

		events.addEventListener("look", (e: MessageEvent<string>) => {
			const look = JSON.parse(e.data) as Look;

			setLost("");
			setSeen((n) => n + 1);
			setLooks((before) => [...before, look].slice(-MOST_KEPT));
			if (look.ended) events.close();
		});
		/* A browser tries again by itself, unless the answer is no stream of events. */
		events.addEventListener("error", () =>
			setLost(events.readyState === EventSource.CLOSED ? "refused" : "trying again"),
		);
		return () => events.close();
	}, [id]);
	return { looks, seen, lost };
}
