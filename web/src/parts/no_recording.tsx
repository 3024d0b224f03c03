import { useEffect } from "preact/hooks";
import { source } from "../state";

const AGAIN_MS = 2000;

/** Stands for a view while the server has no recording; loads the page anew when there is one. */
export function NoRecording() {
	useEffect(() => {
		const look = setInterval(() => {
			source()
				.get("list")
				.then((list) => {
					if (Array.isArray(list) && list.length > 0) location.reload();
				})
				.catch(() => undefined); // the server may be away for a moment
		}, AGAIN_MS);

		return () => clearInterval(look);
	}, []);
	return <p>There is no recording yet. This page shows the first one when it arrives.</p>;
}
